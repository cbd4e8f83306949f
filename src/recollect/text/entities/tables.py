"""The words by which entities are recognised: first names, places, and what tells a kind of name.

The lists are short and of the most common ones; context decides about the others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Common first names of several countries, in lower case.
FIRST_NAMES = _words(
    """
    aaron abby abdul abigail adam adele adrian agnes ahmed aisha alan albert alberto aldo alejandro alex alexander
    alexandra alexei alexis alfred ali alice alicia alina alison allan allison alma alvaro amanda amber amelia amir amy
    ana anders andre andrea andreas andrei andrew andy angel angela angelica anita ann anna anne annie anthony antoine
    anton antonio anya april aria arjun arthur arturo ashley astrid audrey aurora ava axel barbara barry beatrice
    beatriz becky ben benjamin bernard beth betty bianca bill billy bjorn blake bob bobby boris bradley brandon brenda
    brian brittany bruce bruno bryan caleb camila camille carl carla carlo carlos carmen carol carolina caroline
    carolyn carrie catherine cathy cecilia cedric celia celine chad charles charlie charlotte chelsea cheryl chloe chris
    christian christina christine christopher cindy claire clara claudia claudio clement cody colin connie connor
    craig cristina crystal cynthia daisy dan dana daniel daniela daniele danielle danny darren dave david dawn dean
    debbie deborah denise dennis derek diana diane diego dieter dimitri dirk dolores dominic don donald donna doris
    dorothy doug douglas dylan eddie edgar edith eduardo edward edwin elaine eleanor elena eli elias elijah elisa
    elisabeth elise eliza elizabeth ella ellen ellie elsa emil emilia emilie emily emma enrico enrique eric erica erik
    erika erin ernest ernesto esteban esther ethan eugene eva evan eve evelyn fabio faith fatima felipe felix fernanda
    fernando fiona florence florian frances francesca francesco francis francisco franco francois frank franz fred
    freddie frederick frida friedrich gabriel gabriela gabrielle gareth gary gavin gemma george georgia gerald gerard
    gerhard gianni giorgio giovanni gina giulia giuseppe glen gloria gordon grace graham greg gregory greta guillermo
    gunnar gustav hailey hanna hannah hans harold harriet harry harvey hassan hazel heather hector heidi heinrich helen
    helena helene helga henri henrik henry herbert hilda holly howard hugh hugo ian ibrahim ida igor ines ingrid irene
    iris irina isaac isabel isabella isabelle ivan jack jackie jackson jacob jacqueline jacques jaime jake james jamie
    jan jana jane janet janice jared jasmine jason javier jay jean jeff jeffrey jen jenna jennifer jenny jeremy jerome
    jerry jesse jessica jessie jim jimmy joan joana joann joanna joanne joao joaquin jodie joe joel johan johanna
    johannes john johnny jon jonas jonathan jordan jorge jose josef joseph joshua josh joyce juan judith judy julia
    julian juliana julie juliet julio jurgen justin kai karen karin karina karl karla kate katherine kathleen kathryn
    kathy katie katja katrin kayla keith kelly ken kenneth kevin khaled kim kimberly kirsten klaus kristen kristin
    kristina kurt kyle lara larry lars laura lauren laurence laurent lea leah lena leo leon leona leonard leonardo
    leslie liam lily linda lisa liz lloyd lorenzo louis louisa louise luca lucas lucia luciana lucy luis luisa luke
    lydia lynn madeline madison magnus malik manuel manuela marc marcel marcela marco marcos marcus margaret maria
    mariam marian mariana marie marina mario marion marisa mark markus marlene marta martha martin martina marvin mary
    mathilde mats matt matteo matthew maureen maurice max maya megan mehmet mel melanie melissa mercedes mia michael
    michaela michel michele michelle miguel mike mikhail mila milan miranda miriam mohamed mohammed molly monica
    monika morgan moritz muhammad mustafa nadia nancy naomi natalia natalie natasha nate nathan nathaniel neil nelson
    nicholas nick nicola nicolas nicole nigel nikolai nils nina noah noel nora norma norman olga olivia oliver olivier
    omar oscar otto owen pablo paolo pascal patricia patrick patty paul paula paulo pedro peggy penelope per pete peter
    petra phil philip philippe phoebe pierre piotr priya rachel rafael rahul raj ralf ralph ramon randy raquel raul ray
    raymond rebecca regina rene renee ricardo riccardo richard rick ricky rita rob robert roberta roberto robin rodrigo
    roger roland rolf roman ron ronald ronnie rosa rosemary ross roxanne roy ruben rudolf russell ruth ryan sabine sally
    sam samantha samir samuel sandra sara sarah saskia scott sean sebastian serena sergei sergio shannon sharon shaun
    sheila shirley sigrid silvia simon simone sofia sonia sonja sophia sophie stacy stan stefan stefania stella stephan
    stephanie stephen steve steven stuart sue susan susanna sven sylvia tamara tanya tara tatiana ted teresa terry
    thea theo theodore theresa thomas tiffany tim timothy tina tobias todd tom tomas tommy toni tony tracy travis
    trevor tyler ulrich ulrike ursula uwe valentina valeria valerie vanessa vera veronica victor victoria viktor
    vincent viola virginia vivian vladimir walter wanda wayne wendy werner wilhelm will william wolfgang xavier yasmin
    yolanda yuki yusuf yvonne zachary zoe
    """
)
#: Countries, states and well-known cities, in lower case; words are joined by a blank.
PLACES = frozenset(
    name.strip()
    for name in """
    afghanistan, albania, algeria, argentina, armenia, australia, austria, azerbaijan, bahamas, bangladesh, barbados,
    belarus, belgium, bolivia, bosnia, brazil, bulgaria, cambodia, cameroon, canada, chile, china, colombia, costa rica,
    croatia, cuba, cyprus, czech republic, czechia, denmark, dominican republic, ecuador, egypt, england, estonia,
    ethiopia, finland, france, georgia, germany, ghana, great britain, greece, greenland, guatemala, haiti, honduras,
    hong kong, hungary, iceland, india, indonesia, iran, iraq, ireland, israel, italy, jamaica, japan, jordan,
    kazakhstan, kenya, kosovo, kuwait, laos, latvia, lebanon, libya, lithuania, luxembourg, malaysia, malta, mexico,
    moldova, monaco, mongolia, montenegro, morocco, mozambique, myanmar, namibia, nepal, netherlands, new zealand,
    nicaragua, nigeria, north korea, northern ireland, norway, oman, pakistan, panama, paraguay, peru, philippines,
    poland, portugal, puerto rico, qatar, romania, russia, rwanda, saudi arabia, scotland, senegal, serbia, singapore,
    slovakia, slovenia, somalia, south africa, south korea, spain, sri lanka, sudan, sweden, switzerland, syria, taiwan,
    tanzania, thailand, tunisia, turkey, uganda, uk, ukraine, united arab emirates, united kingdom, united states,
    uruguay, us, usa, uzbekistan, venezuela, vietnam, wales, yemen, zambia, zimbabwe, africa, america, antarctica, asia,
    caribbean, europe, north america, south america, latin america, middle east, scandinavia, alabama, alaska, arizona,
    arkansas, california, colorado, connecticut, delaware, florida, hawaii, idaho, illinois, indiana, iowa, kansas,
    kentucky, louisiana, maine, maryland, massachusetts, michigan, minnesota, mississippi, missouri, montana, nebraska,
    nevada, new hampshire, new jersey, new mexico, north carolina, north dakota, ohio, oklahoma, oregon, pennsylvania,
    rhode island, south carolina, south dakota, tennessee, texas, utah, vermont, west virginia, wisconsin, wyoming,
    ontario, quebec, british columbia, bavaria, tuscany, catalonia, brittany, amsterdam, athens, atlanta, auckland,
    austin, baltimore, bangkok, barcelona, basel, beijing, beirut, belfast, belgrade, bergen, berlin, bern, birmingham,
    bogota, bordeaux, boston, bratislava, brisbane, bristol, brooklyn, brussels, bucharest, budapest, buenos aires,
    cairo, cambridge, cape town, chicago, cleveland, cologne, copenhagen, dallas, delhi, denver, detroit, dresden,
    dubai, dublin, edinburgh, florence, frankfurt, geneva, glasgow, gothenburg, hamburg, hanoi, havana, helsinki,
    houston, istanbul, jakarta, jerusalem, johannesburg, kiev, kyiv, krakow, kyoto, lagos, las vegas, leeds, leipzig,
    lima, lisbon, liverpool, ljubljana, london, los angeles, lyon, madrid, malmo, manchester, manhattan, manila,
    marseille, melbourne, mexico city, miami, milan, minneapolis, montreal, moscow, mumbai, munich, nairobi, naples,
    nashville, new delhi, new orleans, new york, new york city, nice, osaka, oslo, ottawa, oxford, paris, philadelphia,
    phoenix, pittsburgh, porto, portland, prague, reykjavik, riga, rio de janeiro, rome, rotterdam, salzburg,
    san diego, san francisco, santiago, sao paulo, sarajevo, seattle, seoul, seville, shanghai, sofia, stockholm,
    strasbourg, stuttgart, sydney, taipei, tallinn, tampa, tel aviv, tokyo, toronto, toulouse, trondheim, turin,
    valencia, vancouver, venice, vienna, vilnius, warsaw, washington, wellington, zagreb, zurich, alps, andes,
    himalayas, mediterranean, pyrenees, rockies, sahara, silicon valley
    """.replace("\n", " ").split(",")
)
#: Last words of the names of organisations, places, and of things that are neither.
ORGANIZATION_ENDS = _words(
    """
    inc corp corporation ltd llc gmbh ag plc co company companies group holdings partners associates agency bank
    university college school academy institute foundation association society union council committee ministry
    department bureau commission federation league club team studios records press labs laboratories technologies
    systems software solutions services industries motors airlines airways hospital clinic church orchestra hub
    wolves lakers bulls giants warriors rangers united
    """
)
ORGANIZATION_BEGINS = _words("university bank ministry department institute college school bureau church")
PLACE_ENDS = _words(
    """
    street road avenue lane boulevard square plaza bridge park garden gardens beach bay lake river mountain mountains
    mount island islands valley canyon forest falls harbour harbor port airport station city town village county
    district province hotel hostel inn resort library museum gallery theatre theater stadium arena castle palace tower
    cathedral zoo aquarium mall market cafe restaurant bar pub gym center centre building hall house
    """
)
PLACE_BEGINS = _words("mount lake fort port san santa saint st north south east west upper lower new old")
NAME_ENDS = _words(
    """
    festival conference summit marathon race cup championship championships olympics award awards prize exhibition fair
    expo tour concert show day week month time zone standard project program programme act law theorem formula
    """
)
#: What is written before the name of a person.
TITLES = _words("mr mrs ms miss dr prof professor sir madam lady lord herr frau monsieur madame senor senora captain")
#: Words that are written between the words of a name.
CONNECTORS = _words("of de da del della di du la le van von der den the for and und y e zu")
#: What people call each other before a name: "my friend Ana".
RELATIVES = _words(
    """
    friend friends buddy brother sister mother father mom dad mum wife husband partner girlfriend boyfriend fiance
    fiancee son daughter cousin uncle aunt nephew niece grandma grandpa grandmother grandfather boss manager colleague
    coworker neighbor neighbour teacher mentor coach doctor producer director assistant client roommate
    dating married met meet meeting with told asked
    """
)
#: What a person does, after the name.
PERSON_VERBS = _words(
    """
    said says told tells asked asks suggested suggests recommended recommends thinks thought wants wanted likes loves
    hates prefers lives lived works worked moved called calls emailed wrote writes met plays played went goes came
    is's needs agreed agrees invited helped helps mentioned explained decided gave sent brought bought knows knew
    """
)
GREETINGS = _words(
    """
    hey hi hello dear thanks thank bye goodbye congrats congratulations welcome sorry wow woah whoa cool yes yeah yep no
    nope sure okay ok great nice awesome sounds good well oh hmm totally definitely absolutely right agreed woohoo
    cheers morning evening night please haha
    """
)
#: Words before the name of a place, and before the name of an organisation.
PLACE_CUES = _words("in near visit visited visiting toward towards around across through to from into via")
MOVING = _words("in near visit visited visiting around across")
WORK = _words("work works worked working job position joined joining employed intern interned")
#: Words that begin a sentence with a capital letter and are no names.
COMMON = _words(
    """
    a about after again all also although always am an and another any anything are as ask at awesome be because
    been before being believe besides both but by bye call can check come congrats congratulations cool could dance
    dancing dealing definitely did do does doing don each either else even ever every everyone everything exactly
    find finishing first fitting for from get getting give glad go going gonna good got gotta great growing had
    happy hard has have having he hearing hello help her here hers hey hi his hmm hope hopefully how however i if in
    inspiring instead investing is it its just keep kickboxing kind kinda last lately later let life like likewise
    look looking looks losing lost love loving make making man many may maybe me might mine more most much must my
    need networking never new next nice no none nope nor not nothing now of oh ok okay on once one only or other our
    ours out over painting playing please possibly probably problem push really recently relaxing remember
    researching right sad same saw say see seems seriously she should since so some someone something sometimes soon
    sorry sounds starting stay still success such sure take taking talk tell than thank thanks that the their them
    then there these they thing things think this those though through time to today together tomorrow tonight too
    totally true try under unfortunately until up us very want was watch way we welcome well were what whatever when
    where which while who whoa whole why will winning wish with without woah woohoo work working would wow yeah year
    years yep yes yesterday yet you your yours best big day days fun guess haha hang honestly hopefully imagine
    interesting lol luckily meanwhile mom dad oops perhaps plus quite rather sadly since sincerely speaking surely
    thinking thankfully usually wait wanna whenever
    """
)
#: Languages, nationalities and other adjectives that have a capital letter and are no names.
ADJECTIVES = _words(
    """
    african american arabic argentinian asian australian austrian belgian brazilian british bulgarian canadian catalan
    catholic chinese christian croatian cuban czech danish dutch egyptian english european finnish french german greek
    hebrew hindi hungarian icelandic indian indonesian iranian irish islamic italian japanese jewish korean latin
    latvian lithuanian mexican muslim norwegian persian peruvian polish portuguese protestant romanian russian
    scandinavian scottish serbian slovak slovenian spanish swedish swiss thai turkish ukrainian vietnamese welsh western
    eastern northern southern christmas easter halloween thanksgiving bc ad god internet web
    """
)


# Patterns of what has a form of its own: addresses, handles, dates and quantities. All are linear in the text.
#
# Repeats are bounded, or possessive with nothing after them that can fail.

_MONTH = (
    "(?:january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tues?|wed|thu|thurs|fri|sat|sun"
_NUMBER = "(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}(?![0-9])|[0-9]{1,15})(?:\\.[0-9]{1,9})?"
_WORD_NUMBER = (
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred"
    "|a couple of|a few|several|half an?|an?)"
)
#: What a text must have for DATE, MONTH and QUANTITY to match, unless it has a digit.
MONTHS = frozenset(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
DATE_WORDS = frozenset(
    "yesterday tomorrow tonight today last this next past previous coming ago monday tuesday wednesday thursday friday "
    "saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays".split()
)
NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred couple "
    "few several half a an".split()
)
_UNIT = (
    "(?:kilometers?|kilometres?|km/h|km|meters?|metres?|cm|mm|miles?|mph|feet|foot|ft|inch(?:es)?|yards?"
    "|kilograms?|kilos?|kg|grams?|mg|pounds?|lbs?|ounces?|oz|tons?|tonnes?|liters?|litres?|ml|gallons?|cups?"
    "|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|decades?"
    "|dollars?|euros?|pounds|cents?|bucks|usd|eur|gbp|percent|per cent|degrees?|°c|°f"
    "|gb|mb|kb|tb|ghz|mhz|watts?|kw|kwh|calories|kcal|pages?|people|persons?)"
)
_CLOCK = "(?:[01]?[0-9]|2[0-3])(?::[0-5][0-9])(?: ?[ap]\\.?m\\.?)?|(?:1[0-2]|0?[1-9]) ?[ap]\\.?m\\b\\.?"
_ZONE = "(?: (?:utc|gmt|[a-z]{1,3}[sd]?t)\\b)?"


class Patterns(NamedTuple):
    """The patterns.

    Attributes:
        address: An e-mail address, or a URL.
        handle: A name after "@".
        date: A date, a time of day, or a day relative to today.
        year: A year after a preposition, as group 1.
        month: A month after a preposition, as group 1.
        quantity: A number with a unit or a currency.
    """

    address: re.Pattern[str]
    handle: re.Pattern[str]
    date: re.Pattern[str]
    year: re.Pattern[str]
    month: re.Pattern[str]
    quantity: re.Pattern[str]


@cache
def compiled() -> Patterns:
    """Return the patterns. They are compiled when a text is first read: it takes a while."""
    address = re.compile(
        r"(?i:(?<![\w.@/])(?:https?://|www\.)[^\s<>\"')\]]++"
        r"|(?<![\w.+-])[\w.+-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,6}[a-z]{2,24}(?![\w-]))"
    )
    handle = re.compile(r"(?<![\w@./-])@[A-Za-z_][A-Za-z0-9_]{1,30}(?![\w@])")
    date = re.compile(
        rf"(?i:(?<![\w.-])(?:"
        rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?!-?[0-9])"
        rf"|{_MONTH}\.? (?:the )?[0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? (?:19|20)[0-9]{{2}})?(?![0-9:])"
        rf"|(?:the )?[0-9]{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?:19|20)[0-9]{{2}})?\b"
        rf"|{_MONTH},? (?:19|20)[0-9]{{2}}\b"
        rf"|[0-9]{{1,2}}[./][0-9]{{1,2}}[./](?:19|20)?[0-9]{{2}}(?![0-9./])"
        rf"|the day (?:before yesterday|after tomorrow)|yesterday|tomorrow|tonight|today"
        rf"|(?:last|this|next|past|previous|coming) (?:week(?:end)?|month|year|summer|winter|spring|autumn|fall|night"
        rf"|{_DAY}|{_MONTH})\b"
        rf"|(?:{_WORD_NUMBER}|[0-9]{{1,3}}) (?:day|week|month|year|decade)s? ago\b"
        rf"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
        rf"|(?:{_CLOCK}){_ZONE}"
        rf"))"
    )
    #: A year after a preposition. Group 1 is the year.
    year = re.compile(r"(?i:\b(?:in|since|until|till|from|of|by|during|around) ((?:19|20)[0-9]{2})\b(?![.,]?[0-9-]))")
    #: A month after a preposition. Group 1 is the month.
    month = re.compile(rf"(?i:\b(?:in|since|until|till|by|during) ({_MONTH})\b)")
    quantity = re.compile(
        rf"(?i:(?<![\w.,-])(?:[$€£¥] ?{_NUMBER}(?: ?(?:k|m|bn|thousand|million|billion))?(?![0-9])"
        rf"|{_NUMBER} ?(?:%|[$€£¥])"
        rf"|(?:{_NUMBER}|{_WORD_NUMBER})(?: ?(?:thousand|million|billion))?[ -]?{_UNIT}\b(?! ago\b)(?:-old\b)?))"
    )
    return Patterns(address, handle, date, year, month, quantity)
