"""Asking: whether a text only asks, so that it answers no question, and whether a question is about questions.

"Where did I park the car?" and "Tell me the code of the alarm, please" only ask. "I parked at the station, where do I
pay?" and "Did you know that our cellar floods?" also tell something, and so does every text with a sentence that is
neither a question nor a request for information. The rules are for the languages in which dates are read.
"""

from __future__ import annotations

import re
from functools import cache

from recollect.common.regexes import regex

#: A longer text, in characters, says more than its question.
_MAX_LENGTH = 400
_SENTENCE_END = regex(r"(?<=[.!?。！？])\s*(?=\S)|\n+")
_WORD = regex(r"[^\W_]+(?:['’-][^\W_]+)*")
#: Words with which a question begins: those for what is asked, and verbs that stand first.
_BEGINS = """
what what's whats who who's whom whose when when's where where's which why how how's is are was were am do does did
can could will would shall should may might must have has had any don't doesn't didn't isn't aren't wasn't weren't
hasn't haven't won't wouldn't couldn't shouldn't can't
was wer wen wem wessen wann wo woher wohin warum wieso weshalb wie wieviel wieviele welche welcher welches welchen
welchem womit wofür worüber wobei wozu woran worauf wovon worum wogegen ist sind war waren bin bist hat haben habe hast
hatte hatten kann kannst können könntest könnte könnten könnt soll sollte sollen sollten darf dürfen muss müssen wird
werden würde würdest wirst weißt weiß wissen wisst gibt gab magst möchtest willst
qué que quién quiénes cuándo dónde adónde cómo cuánto cuánta cuántos cuántas cuál cuáles sabes sabe puedes podrías
puede hay
qu'est-ce qu'est qui quand où pourquoi comment combien quel quelle quels quelles quoi est-ce peux-tu pourrais-tu
sais-tu pouvez-vous pourriez-vous savez-vous y-a-t-il as-tu avez-vous ai-je
che cosa cos'è chi quando dove dov'è perché come com'è quanto quanta quanti quante qual quale quali sai puoi potresti
c'è sapete
wat wie wanneer waar waarom hoe hoeveel welke welk waarmee waarvoor zijn kan kun kunt weet heb heeft mag moet zal
zou
quem onde como quantos quantas quais podes pode poderias há
"""
#: Words before the first word of a question.
_FILLERS = frozenset(
    "and so but ok okay hey hi hello well also please sorry oh um und also aber bitte hallo na sag y pero hola oye por "
    "favor et mais alors bonjour dis e ma allora ciao scusa en maar dus hoi mas olá então".split()
)
_PREPOSITIONS = frozenset(
    "in on at for to from with by of since until till about under after before an am auf bei mit für von zu zum seit "
    "bis über unter aus nach um vor ab a de en con por para desde hasta sobre à dans avec pour depuis jusqu'à sur chez "
    "vers di da per su fino tra op met voor van naar sinds tot bij em com até tot au du".split()
)
#: Requests for information, at the beginning of a sentence.
_WH = (
    r"(?:what|who|whom|whose|when|where|which|why|how|if|whether|was|wer|wen|wem|wann|wo|woher|wohin|warum|wie|welche\w*"
    r"|ob|womit|qué|quién|cuándo|dónde|cómo|cuánt\w+|cuál\w*|por qué|si|quand|où|pourquoi|comment|combien|quel\w*"
    r"|jusqu|qui|ce que|che|chi|quando|dove|perché|come|quant\w+|qual\w*|se|wat|wie|wanneer|waar|waarom|hoe|welke?|of"
    r"|que|quem|onde|como)"
)
_REQUEST = regex(
    r"(?:(?:please|bitte|por favor|s'il te plaît|per favore|alsjeblieft),? )?(?:"
    r"(?:tell|show|give|send|read|remind) me (?!that\b|to\b)|let me know |look up |find out "
    r"|(?:i|we) (?:need|want|would like|have|wish) to (?:know|hear|find out) |(?:i|we)'d like to know |i wonder "
    r"|(?:i|we) need (?:the|my|our) (?:\w+ ){0,2}"
    r"(?:code|number|address|name|password|pin|date|time|link|recipe|email|location|price|figure)\b"
    r"|(?:sag(?:e|en sie|st du)?|erzähl(?:e|en sie)?|zeig(?:e|en sie)?|gib|geben sie|nenn(?:e|en sie)?) (?:mir|uns)\b"
    rf"|erinner(?:e|n sie)? mich,? (?:daran,? )?{_WH}\b"
    r"|(?:ich|wir) (?:möchten?|will|wollen|würden? gern\w*|muss) wissen\b"
    r"|(?:ich wüsste|wir wüssten) gern\w*\b"
    rf"|(?:dime|dame|muéstrame|cuéntame|dígame|enséñame)\b|recuérdame {_WH}\b"
    r"|(?:quiero|necesito|quisiera|me gustaría) saber\b"
    rf"|(?:dis|dites|donne|donnez|montre|montrez)-moi\b|rappelle[zr]?-moi {_WH}\b"
    r"|je (?:veux|voudrais|dois|aimerais) savoir\b"
    rf"|(?:dimmi|dammi|mostrami|raccontami|mi dica)\b|ricordami {_WH}\b|(?:voglio|vorrei|devo) sapere\b"
    rf"|(?:zeg|vertel|geef|toon) (?:me|mij)\b|laat me weten\b|herinner me (?:eraan )?{_WH}\b|ik (?:wil|moet) weten\b"
    rf"|(?:diz|diga|dá|mostra|conta)-me\b|me (?:diz|diga|dá|mostra|conta)\b|lembra-me {_WH}\b"
    r"|(?:quero|preciso(?: de)?|gostaria de) saber\b"
    r"|请?(?:你|您)?(?:告诉|告訴|提醒)我"
    rf"|(?:tu sais|vous savez|tu sabes|você sabe|du weißt,?|je weet|tu sai) (?:{_WH[3:]}"
    r")",
    re.IGNORECASE,
)
#: Every request has one of these, in lower case. To look for them takes a small part of the time of the expression.
_OF_REQUESTS = (
    "tell me ", "show me ", "give me ", "send me ", "read me ", "remind me ", "me know ", "look up ", "find out ",
    "to know ", "to hear ", "i wonder ", "need the ", "need my ", "need our ", " mir", " uns", " mich", " wissen",
    "ich wüsste", "wir wüssten", "dime", "dame", "muéstrame", "cuéntame", "dígame", "enséñame", "recuérdame ", " saber",
    "-moi", " savoir", "dimmi", "dammi", "mostrami", "raccontami", "mi dica", "ricordami ", " sapere", "zeg m",
    "vertel m", "geef m", "toon m", " weten", "herinner me ", "-me", "me diz", "me diga", "me dá", "me mostra",
    "me conta", "诉我", "訴我", "醒我", "tu sais ", "vous savez ", "tu sabes ", "você sabe ", "du weißt", "je weet ",
    "tu sai ",
)  # fmt: skip
#: What tells something although it has the form of a question or a request.
_TELLS = regex(
    r"\b(?:know|known|heard|noticed?|believe|remember|mention(?:ed)?|note|remind me|guess|see) (?:that|what i)\b"
    r"|\bdid i (?:tell|mention)\b"
    r"|\b(?:can|could|would) you (?:believe|note|remember|add|save|store|keep|remind me to)\b"
    r"|\b(?:great|nice|good|funny|crazy|amazing|cool|sad|strange|lovely) that\b|\bremind me to\b"
    r"|\b(?:because|since|now that|given that|considering|although|though|but|and) "
    r"(?:i|i'm|i've|we|we're|we've|my|our)\b"
    r"|\b(?:weißt|wisst|wussten|wusstest|wusste) (?:du|ihr|sie)?,? ?(?:schon,? )?dass\b|\bweil\b|\bdenn ich\b"
    r"|\bsab(?:es|ías|e|ía) que\b|\bporque\b|\btu savais que\b|\b(?:sais|savais)-tu que\b|\bparce que\b"
    r"|\b(?:sai|sapevi) che\b|\bwist je dat\b|\bomdat\b|\bsabias que\b|你知道.{0,6}吗.{0,40}是",
    re.IGNORECASE,
)
_UNSPACED_ASKS = regex(
    "什么|什麼|谁|誰|哪|几[个點点岁时]|多少|怎么|怎麼|为什么|為什麼|吗|嗎|呢[？?]?$|何|誰|どこ|いつ|なぜ|どう|どの|どれ|いくら|ですか|ますか|教えて"
)
#: Thanks and greetings, which tell nothing.
_COURTESY = regex(
    r"(?:thanks?(?: you)?|thank you|cheers|hi|hello|hey|please|danke|hallo|bitte|gracias|hola|merci|bonjour|grazie|ciao"
    r"|dank je|obrigad[oa]|olá|谢谢|你好|ありがとう\w*)\b[^.?]{0,24}[.!,]*",
    re.IGNORECASE,
)
#: A question in lower case about what was asked. (To ignore case takes the expression three times as long.)
_OF_QUESTIONS = regex(
    r"\b(?:ask(?:s|ed|ing)?\b|questions?\b|request(?:s|ed)?\b|want(?:ed)?\b|wonder(?:ed|ing)?\b|inquir\w+"
    r"|ge?frag\w+|fragen?\b|wollten? (?:ich|wir)\b.{1,80}\bwissen\b|gebeten\b"
    r"|pregunt\w+|ped(?:í|iste|ido|ió)\b"
    r"|demand\w+|chies\w+|chiest\w+|domand\w+|vroeg\w*|gevraagd\b|vra(?:ag|gen)\b|pergunt\w+|pedi\w*\b)"
    r"|问|問|聞い|質問|尋ね"
)
#: What a text has that asks, other than by a request.
_MARKS = ("?", "？", "か。")


def only_asks(text: str) -> bool:
    """Return whether a text only asks.

    >>> [only_asks(text) for text in ("Where is the key?", "Tell me where the key is, please.", "It hangs there, ok?")]
    [True, True, False]
    >>> only_asks("I parked at the station, where do I pay?"), only_asks("¿Dónde está la llave?")
    (False, True)
    """
    if len(text) > _MAX_LENGTH:
        return False
    if not any(mark in text for mark in _MARKS) and not _has_request(text):
        return False  # most texts stop here
    asks = False
    for sentence in _SENTENCE_END.split(text):
        sentence = sentence.strip().replace("\u2019", "'")
        if not sentence or _COURTESY.fullmatch(sentence):
            continue
        if _TELLS.search(sentence) or not (_is_question(sentence) or _REQUEST.match(sentence)):
            return False
        asks = True
    return asks


def _has_request(text: str) -> bool:
    lower = text.lower()
    if not text.isascii():  # the expression ignores the case of these, too
        lower = lower.replace("ı", "i").replace("ſ", "s").replace("i̇", "i")
    return any(map(lower.__contains__, _OF_REQUESTS)) and _REQUEST.search(text) is not None


def _is_question(sentence: str) -> bool:
    end = sentence.rstrip("\"')* \t")
    if not end.endswith(("?", "？", "か。")):
        return False
    if sentence.startswith("¿"):
        return True
    words = [word.lower() for word in _WORD.findall(sentence)]
    while words and words[0] in _FILLERS and len(words) > 1 and words[0] not in _begins():
        words.pop(0)
    if not words:
        return False
    if words[0] in _begins() or (words[0] in _PREPOSITIONS and len(words) > 1 and words[1] in _begins()):
        return True
    if _REQUEST.match(sentence):
        return True
    clause = "," not in sentence and "，" not in sentence and "、" not in sentence
    return clause and (not _begins().isdisjoint(words[-4:]) or _UNSPACED_ASKS.search(sentence) is not None)


@cache
def _begins() -> frozenset[str]:
    return frozenset(_BEGINS.split())


def is_about_questions(question: str) -> bool:
    """Return whether a question is about what was asked.

    >>> is_about_questions("What did Ana ask about Oslo?"), is_about_questions("Where is Oslo?")
    (True, False)
    """
    return _OF_QUESTIONS.search(question.lower()) is not None
