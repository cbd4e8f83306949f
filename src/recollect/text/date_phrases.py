"""Phrases of time, by language: names of days and months, words for counts and units, and templates of phrases.

A template is a regular expression in which a blank stands for white space, `[...]` for an optional part, and `{slot}`
for the words of a slot (`date_matching`). Its rule says what the phrase means (`dates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Phrases(NamedTuple):
    """The phrases of a language.

    Attributes:
        near: Phrases of days by their distance from today: "yesterday -1; today 0".
        weekdays: The names of the days from Monday, those of a day separated by blanks, days by semicolons.
        months: The names of the months from January, likewise.
        counts: Words for numbers: "one 1; two 2".
        units: Words for units, each before its unit: "day days day; week weeks week".
        hours: Words for hours and minutes, likewise. Where `templates` count days back, they count these back, too.
        which: Words for the last, this and the next: "last -1; this 0; next 1".
        ordinals: Words for the weeks of a month, from 0, and -1 for the last.
        templates: A line for each template, with its rule before a colon. Where a question mark follows the rule, the
            phrase counts only as a bound.
        bounds: Expressions before a phrase ("...") or after it ("$...") that make it a bound of a span.
        day_suffix: An expression for what may follow the number of a day.
        unsure: Names of months that are ordinary words too, and count only after `introducing` or beside a number.
        introducing: An expression for the words before such names.
        shared: Words that mean something else in other languages: only a question in this one names a date by them.
        spaced: Whether words are separated by blanks.
    """

    near: str
    weekdays: str
    months: str
    counts: str
    units: str
    hours: str
    which: str
    ordinals: str
    templates: str
    bounds: Mapping[str, str]
    day_suffix: str = ""
    unsure: str = ""
    introducing: str = ""
    shared: str = ""
    spaced: bool = True


ENGLISH = Phrases(
    near="the day before yesterday -2; yesterday -1; last night -1; today 0; this morning 0; this afternoon 0; "
    "this evening 0; tonight 0; tomorrow 1; the day after tomorrow 2",
    weekdays="monday mon; tuesday tue tues; wednesday wed; thursday thu thurs; friday fri; saturday sat; sunday sun",
    months="january jan; february feb; march mar; april apr; may; june jun; july jul; august aug; "
    "september sep sept; october oct; november nov; december dec",
    counts="a 1; an 1; one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9; ten 10; "
    "eleven 11; twelve 12; thirteen 13; fourteen 14; fifteen 15; sixteen 16; seventeen 17; eighteen 18; nineteen 19; "
    "twenty 20; thirty 30; a couple of 2; a few 3",
    units="day days day; week weeks week; fortnight fortnights fortnight; weekend weekends weekend; "
    "month months month; year years year",
    hours="hour hours hour; minute minutes min mins minute",
    which="last -1; past -1; previous -1; this 0; next 1",
    ordinals="first 0; 1st 0; second 1; 2nd 1; third 2; 3rd 2; fourth 3; 4th 3; last -1",
    day_suffix="(?:st|nd|rd|th)?",
    unsure="may march",
    introducing="in|on|of|during|since|until|before|after",
    bounds={"since": "since(?: the)?", "before": "before(?: the)?", "after": "after(?: the)?"},
    templates=r"""
        near: {near}
        week of: [the ]{ordinal} week of {month}[,? {year}]
        ago: {count} {step} ago
        within: [(?:in|over|during|for) ]the (?:last|past) {count} {step}
        which day: {which} {weekday}
        which: {which} {unit}
        between: (?:between|from) [the ]{day} [[of ]{month} ](?:and|to|until|till) [the ]{day2} [of ]{month2}[,? {year}]
        between: (?:between|from) {month} [the ]{day} (?:and|to|until|till) [{month2} ][the ]{day2}[,? {year}]
        weekday: on {weekday}
        weekend: (?:at|on|over|during) the weekend
        date: [on ][the ]{day} [of ]{month}[,? {year}]
        date: {month}\.? [the ]{day}[,? {year}]
        weekday?: {weekday}
        day?: the {day}(?<=st|nd|rd|th)(?!\s+of\b)
        day: on the {day}(?<=st|nd|rd|th)(?!\s+of\b)
        month: {month}[,? {year}]
        year: {year}
    """,
)
GERMAN = Phrases(
    near="vorgestern -2; gestern -1; gestern abend -1; gestern früh -1; letzte nacht -1; heute 0; heute morgen 0; "
    "heute früh 0; heute abend 0; morgen 1; übermorgen 2",
    weekdays="montag; dienstag; mittwoch; donnerstag; freitag; samstag sonnabend; sonntag",
    months="januar jänner jan; februar feb; märz; april apr; mai; juni jun; juli jul; august aug; september sept; "
    "oktober okt; november nov; dezember dez",
    counts="einem 1; einer 1; ein 1; eine 1; zwei 2; drei 3; vier 4; fünf 5; sechs 6; sieben 7; acht 8; neun 9; "
    "zehn 10; elf 11; zwölf 12; vierzehn 14; fünfzehn 15; zwanzig 20; dreißig 30; ein paar 3; einigen 3; einige 3",
    units="tag tage tagen day; woche wochen week; wochenende wochenenden weekend; monat monate monaten month; "
    "jahr jahre jahren year",
    hours="stunde stunden hour; minute minuten minute",
    which="letzte -1; letzten -1; letzter -1; letztes -1; vergangene -1; vergangenen -1; vergangenes -1; vorige -1; "
    "vorigen -1; voriges -1; diese 0; diesen 0; dieser 0; dieses 0; diesem 0; nächste 1; nächsten 1; nächstes 1; "
    "kommende 1; kommenden 1; kommendes 1",
    ordinals="erste 0; ersten 0; zweite 1; zweiten 1; dritte 2; dritten 2; vierte 3; vierten 3; letzte -1; letzten -1",
    day_suffix=r"(?:\.|ten|te)?",
    shared="morgen tag jan",
    bounds={"since": "seit(?: dem| der)?", "before": "vor(?: dem| der)?", "after": "nach(?: dem| der)?"},
    templates=r"""
        ago: vor {count} {step}
        within: (?:in|während) den (?:letzten|vergangenen) {count} {step}
        near: {near}
        week of: [in ][der ]{ordinal} woche (?:im|des) {month}s?[ {year}]
        which day: [am ]{which} {weekday}
        which: [in |am |im ][der ]{which} {unit}
        between: zwischen [dem ]{day} [{month} ]und [dem ]{day2} {month2}[ {year}]
        between: vom {day} [{month} ]bis [zum ]{day2} {month2}[ {year}]
        weekday: am {weekday}(?:abend|morgen|nachmittag|vormittag|mittag)?
        weekday?: {weekday}
        weekend: am wochenende
        date: [am ]{day} {month}[ {year}]
        day: am {day}(?<=\.|n|e)(?!\s*\w)
        day?: {day}(?<=\.|n|e)(?!\s*\w)
        month: {month}[ {year}]
        year: {year}
    """,
)
FRENCH = Phrases(
    near="avant-hier -2; hier -1; hier soir -1; hier matin -1; cette nuit -1; la nuit dernière -1; aujourd'hui 0; "
    "ce matin 0; cet après-midi 0; ce soir 0; demain 1; après-demain 2",
    weekdays="lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche",
    months="janvier; février; mars; avril; mai; juin; juillet; août; septembre; octobre; novembre; décembre",
    counts="un 1; une 1; deux 2; trois 3; quatre 4; cinq 5; six 6; sept 7; huit 8; neuf 9; dix 10; onze 11; douze 12; "
    "quatorze 14; quinze 15; vingt 20; trente 30; quelques 3",
    units="jour jours day; semaine semaines week; quinzaine fortnight; week-end weekend weekend; mois month; "
    "an ans année années year",
    hours="heure heures hour; minute minutes minute",
    which="dernière -1; dernier -1; passée -1; passé -1; ce 0; cet 0; cette 0; prochaine 1; prochain 1",
    ordinals="première 0; deuxième 1; seconde 1; troisième 2; quatrième 3; dernière -1",
    day_suffix="(?:er)?",
    unsure="mars",
    shared="hier an ans mars sept jour",
    introducing="en|de|du|depuis|avant|après|mois de",
    bounds={"since": "depuis(?: le)?", "before": "avant(?: le)?", "after": "après(?: le)?|apres(?: le)?"},
    templates=r"""
        ago: il y a {count} {step}
        within: (?:ces|les|des) {count} derni(?:è|e)re?s {step}
        within: (?:ces|les) derni(?:è|e)re?s {count} {step}
        near: {near}
        week of: [la ]{ordinal} semaine d(?:e |')[mois de ]{month}[ {year}]
        which day: [le ]{weekday} {which}
        which: [la |le |l']{unit} {which}
        weekend: (?:le|ce|au|pendant le) week-?end
        which: (?:cette|ce|cet) {unit}
        between: entre le {day} [{month} ]et le {day2} {month2}[ {year}]
        between: du {day} [{month} ]au {day2} {month2}[ {year}]
        weekday: [le |ce ]{weekday}
        date: [le ]{day} {month}[ {year}]
        day: le {day}(?!\s+\w)
        day?: le {day}(?!\s+\w)
        month: {month}[ {year}]
        year: {year}
    """,
)
SPANISH = Phrases(
    near="anteayer -2; antes de ayer -2; antier -2; ayer -1; anoche -1; hoy 0; esta mañana 0; esta tarde 0; "
    "esta noche 0; mañana 1; pasado mañana 2",
    weekdays="lunes; martes; miércoles; jueves; viernes; sábado; domingo",
    months="enero; febrero; marzo; abril; mayo; junio; julio; agosto; septiembre setiembre; octubre; noviembre; "
    "diciembre",
    counts="un 1; una 1; dos 2; tres 3; cuatro 4; cinco 5; seis 6; siete 7; ocho 8; nueve 9; diez 10; once 11; "
    "doce 12; catorce 14; quince 15; veinte 20; treinta 30; un par de 2; unos 3; unas 3",
    units="día días day; semana semanas week; quincena fortnight; mes meses month; año años year",
    hours="hora horas hour; minuto minutos minute",
    which="pasado -1; pasada -1; último -1; última -1; este 0; esta 0; próximo 1; próxima 1",
    ordinals="primera 0; segunda 1; tercera 2; cuarta 3; última -1",
    shared="marzo hoy junio julio agosto",
    bounds={"since": "desde(?: el)?", "before": "antes del?(?: el)?", "after": "después del?|despues del?"},
    templates=r"""
        near: {near}
        ago: hace {count} {step}
        within: (?:en )?(?:los|las) últim(?:o|a)s {count} {step}
        week of: [la ]{ordinal} semana de {month}[ (?:de|del) {year}]
        which day: [el ]{weekday} {which}
        which day: [el ]{which} {weekday}
        which weekend: [el |este ]fin de semana {which}
        which: [la |el ]{unit} {which}
        which: [la |el ]{which} {unit}
        between: entre el {day} [de {month} ]y el {day2} de {month2}[ (?:de|del) {year}]
        between: del {day} [de {month} ]al {day2} de {month2}[ (?:de|del) {year}]
        weekday: (?:el|este) {weekday}
        weekday?: {weekday}
        weekend: (?:el|este) fin de semana
        date: [el ]{day} de {month}[ (?:de|del) {year}]
        day: el [día ]{day}(?!\s+\w)
        day?: [día ]{day}(?!\s+\w)
        month: {month}[ (?:de|del) {year}]
        year: {year}
    """,
)
ITALIAN = Phrases(
    near="l'altro ieri -2; l'altroieri -2; altro ieri -2; ieri -1; ieri sera -1; stanotte 0; oggi 0; stamattina 0; "
    "stasera 0; domani 1; dopodomani 2",
    weekdays="lunedì; martedì; mercoledì; giovedì; venerdì; sabato; domenica",
    months="gennaio; febbraio; marzo; aprile; maggio; giugno; luglio; agosto; settembre; ottobre; novembre; dicembre",
    counts="un 1; una 1; uno 1; due 2; tre 3; quattro 4; cinque 5; sei 6; sette 7; otto 8; nove 9; dieci 10; "
    "undici 11; dodici 12; quattordici 14; quindici 15; venti 20; trenta 30; un paio di 2; qualche 3",
    units="giorno giorni day; settimana settimane week; mese mesi month; anno anni year",
    hours="ora ore hour; minuto minuti minute",
    which="scorso -1; scorsa -1; passato -1; passata -1; questo 0; questa 0; prossimo 1; prossima 1",
    ordinals="prima 0; seconda 1; terza 2; quarta 3; ultima -1",
    shared="marzo agosto",
    bounds={"since": "da(?:l|lla)?", "before": "prima del(?:la)?|prima di", "after": "dopo(?: il| la)?"},
    templates=r"""
        near: {near}
        ago: {count} {step} fa
        within: (?:negli|nei|nelle) ultim(?:i|e) {count} {step}
        week of: [la |nella ]{ordinal} settimana di {month}[ (?:del )?{year}]
        which day: [lo |il ]{weekday} {which}
        which day: [lo |il ]{which} {weekday}
        which: quest'{unit}
        which: [la |il |lo |l']{unit} {which}
        which: [la |il |lo ]{which} {unit}
        between: tra il {day} [{month} ]e il {day2} {month2}[ {year}]
        between: dal {day} [{month} ]al {day2} {month2}[ {year}]
        weekday: [di |il ]{weekday}
        weekend: (?:nel|questo|il|nello scorso|lo scorso) (?:fine settimana|weekend)
        date: [il |l']{day} {month}[ {year}]
        day: il {day}(?!\s+\w)
        day?: {day}(?!\s+\w)
        month: {month}[ (?:del )?{year}]
        year: {year}
    """,
)
PORTUGUESE = Phrases(
    near="anteontem -2; ontem -1; ontem à noite -1; hoje 0; esta manhã 0; esta noite 0; amanhã 1; depois de amanhã 2",
    weekdays="segunda-feira segunda; terça-feira terça; quarta-feira quarta; quinta-feira quinta; sexta-feira sexta; "
    "sábado; domingo",
    months="janeiro; fevereiro; março; abril; maio; junho; julho; agosto; setembro; outubro; novembro; dezembro",
    counts="um 1; uma 1; dois 2; duas 2; três 3; quatro 4; cinco 5; seis 6; sete 7; oito 8; nove 9; dez 10; "
    "onze 11; doze 12; quatorze 14; catorze 14; quinze 15; vinte 20; trinta 30; alguns 3; algumas 3",
    units="dia dias day; semana semanas week; quinzena fortnight; mês meses month; ano anos year",
    hours="hora horas hour; minuto minutos minute",
    which="passado -1; passada -1; último -1; última -1; este 0; esta 0; próximo 1; próxima 1; que vem 1",
    ordinals="primeira 0; segunda 1; terceira 2; quarta 3; última -1",
    shared="segunda quarta quinta sexta terça julho agosto",
    bounds={"since": "desde(?: a| o)?", "before": "antes d(?:e|o|a)", "after": "depois d(?:e|o|a)"},
    templates=r"""
        near: {near}
        ago: há {count} {step}
        ago: {count} {step} atrás
        within: n(?:o|a)s últim(?:o|a)s {count} {step}
        week of: [n?a ]{ordinal} semana de {month}[ de {year}]
        which day: [na |no ]{weekday} {which}
        which day: [na |no ]{which} {weekday}
        which: [na |no ]{unit} {which}
        which: [na |no ]{which} {unit}
        between: entre (?:o dia )?{day} [de {month} ]e [o dia ]{day2} de {month2}[ de {year}]
        between: de {day} [de {month} ]a {day2} de {month2}[ de {year}]
        weekday: (?:na|no) {weekday}
        weekday?: {weekday}
        weekend: (?:no|neste) (?:fim de semana|final de semana)
        date: [no ][dia ]{day} de {month}[ de {year}]
        day: (?:no )?dia {day}(?!\s+\w)
        month: {month}[ de {year}]
        year: {year}
    """,
)
DUTCH = Phrases(
    near="eergisteren -2; gisteren -1; gisteravond -1; gisterenavond -1; vannacht 0; vandaag 0; vanmorgen 0; "
    "vanochtend 0; vanmiddag 0; vanavond 0; morgen 1; overmorgen 2",
    weekdays="maandag; dinsdag; woensdag; donderdag; vrijdag; zaterdag; zondag",
    months="januari; februari; maart; april; mei; juni; juli; augustus; september; oktober; november; december",
    counts="een 1; één 1; twee 2; drie 3; vier 4; vijf 5; zes 6; zeven 7; acht 8; negen 9; tien 10; "
    "elf 11; twaalf 12; veertien 14; vijftien 15; twintig 20; dertig 30; een paar 3; enkele 3",
    units="dag dagen day; week weken week; weekend weekenden weekend; maand maanden month; jaar jaren year",
    hours="uur uren hour; minuut minuten minute",
    which="vorige -1; vorig -1; afgelopen -1; voorbije -1; verleden -1; deze 0; dit 0; volgende 1; komende 1",
    ordinals="eerste 0; tweede 1; derde 2; vierde 3; laatste -1",
    day_suffix="(?:ste|de|e)?",
    shared="morgen week weekend september november december april mei augustus",
    bounds={"since": "sinds(?: de)?", "before": "voor(?: de)?|vóór(?: de)?", "after": "na(?: de)?"},
    templates=r"""
        near: {near}
        ago: {count} {step} geleden
        within: (?:in|tijdens) de (?:laatste|afgelopen) {count} {step}
        week of: [de ]{ordinal} week van {month}[ {year}]
        which day: {which} {weekday}
        which: {which} {unit}
        between: tussen [de ]{day} [{month} ]en [de ]{day2} {month2}[ {year}]
        between: van {day} [{month} ]tot (?:en met )?{day2} {month2}[ {year}]
        weekday: op {weekday}
        weekday?: {weekday}
        weekend: (?:in|tijdens|van) het weekend
        date: [op ][de ]{day} {month}[ {year}]
        day: op de {day}(?!\s+\w)
        day?: {day}(?!\s+\w)
        month: {month}[ {year}]
        year: {year}
    """,
)
CHINESE = Phrases(
    near="大前天 -3; 前天 -2; 昨天 -1; 昨日 -1; 昨晚 -1; 今天 0; 今日 0; 今早 0; 今晚 0; 明天 1; 后天 2; 後天 2",
    weekdays="; ".join(
        " ".join(week + day for week in ("星期", "周", "週", "礼拜", "禮拜") for day in days)
        for days in ("一", "二", "三", "四", "五", "六", "日天")
    ),
    months="1月 一月; 2月 二月; 3月 三月; 4月 四月; 5月 五月; 6月 六月; 7月 七月; 8月 八月; 9月 九月; 10月 十月; "
    "11月 十一月; 12月 十二月",
    counts="一 1; 二 2; 两 2; 兩 2; 三 3; 四 4; 五 5; 六 6; 七 7; 八 8; 九 9; 十 10; 几 3; 幾 3",
    units="天 day; 周 週 星期 个星期 個星期 礼拜 禮拜 个礼拜 個禮拜 week; 周末 週末 weekend; 个月 個月 month; 年 year",
    hours="小时 小時 个小时 個小時 钟头 鐘頭 个钟头 個鐘頭 hour; 分钟 分鐘 minute",
    which="上 -1; 去 -1; 这 0; 這 0; 本 0; 今 0; 下 1; 明 1",
    ordinals="一 0; 二 1; 三 2; 四 3; 后一 -1; 後一 -1",
    bounds={"since": "自从|自從|自|从|從$以来|以來|起", "before": "$之前|以前", "after": "$之后|之後|以后|以後"},
    templates=r"""
        near: {near}
        ago: {count}{step}(?:之|以)?前
        within: (?:最近|过去|過去|近)(?:的)?{count}{step}
        week of: [{year}年]{month}(?:的)?(?:第|最){ordinal}(?:周|週|个星期|個星期|星期)
        between: (?:从|從|在)?[{year}年]{month}{day}(?:日|号|號)?(?:到|至|和|与|與){day2}(?:日|号|號)
        between: (?:从|從|在)?[{year}年]{month}{day}(?:日|号|號)?(?:到|至|和|与|與){month2}{day2}(?:日|号|號)
        day of week: {which}(?:个|個)?{weekday}
        which: {which}{unit}
        weekday: {weekday}
        weekend: (?:周末|週末)
        date: [{year}年]{month}{day}(?:日|号|號)
        day: {day}(?:日|号|號)
        month: [{year}年]{month}
        year: {year}年
    """,
    spaced=False,
)
JAPANESE = Phrases(
    near="一昨日 -2; おととい -2; 昨日 -1; きのう -1; 昨夜 -1; 昨晩 -1; 今日 0; きょう 0; 今朝 0; 今晩 0; 今夜 0; "
    "明日 1; あした 1; 明後日 2; あさって 2",
    weekdays="月曜日 月曜; 火曜日 火曜; 水曜日 水曜; 木曜日 木曜; 金曜日 金曜; 土曜日 土曜; 日曜日 日曜",
    months="1月 一月; 2月 二月; 3月 三月; 4月 四月; 5月 五月; 6月 六月; 7月 七月; 8月 八月; 9月 九月; 10月 十月; "
    "11月 十一月; 12月 十二月",
    counts="一 1; 二 2; 三 3; 四 4; 五 5; 六 6; 七 7; 八 8; 九 9; 十 10; 数 3",
    units="日 day; 週 週間 week; 週末 weekend; 月 か月 ヶ月 カ月 ヵ月 箇月 month; 年 year",
    hours="時間 hour; 分 分間 minute",
    which="先 -1; 昨 -1; 去 -1; 今 0; 来 1",
    ordinals="1 0; 2 1; 3 2; 4 3; 一 0; 二 1; 三 2; 四 3",
    bounds={"since": "$以来|から", "before": "$より前|以前|の前|までに", "after": "$より後|以降|の後"},
    templates=r"""
        near: {near}
        ago: {count}{step}(?<!\d月)前
        within: (?:この|ここ|最近の?|過去){count}{step}間?
        week of: [{year}年]{month}の?第{ordinal}週
        between: [{year}年]{month}{day}日?(?:から|と){day2}日
        between: [{year}年]{month}{day}日?(?:から|と){month2}{day2}日
        day of week: {which}週の?{weekday}
        which: {which}{unit}
        weekday: {weekday}
        weekend: 週末
        date: [{year}年]{month}{day}日
        day: {day}日(?!間|前|後|目)
        month: [{year}年]{month}
        year: {year}年
    """,
    spaced=False,
)
LANGUAGES: Mapping[str, Phrases] = {
    "en": ENGLISH,
    "de": GERMAN,
    "es": SPANISH,
    "fr": FRENCH,
    "it": ITALIAN,
    "ja": JAPANESE,
    "nl": DUTCH,
    "pt": PORTUGUESE,
    "zh": CHINESE,
}
