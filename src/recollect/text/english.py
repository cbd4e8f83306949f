"""English data that a stemmer lacks: stop words and irregular forms.

Both lists are applied to stored texts and to questions alike.
"""

from __future__ import annotations

#: Stop words: neither indexed nor searched for.
STOP_WORDS = frozenset(
    """a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't d did didn't do does doesn't doing don't down during each few for from
    further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his
    how how's i i'd i'll i'm i've if in into is isn't it it's its itself let's ll m me more most mustn't my myself no
    nor not of off on once only or other ought our ours ourselves out over own re s same shan't she she'd she'll she's
    should shouldn't so some such t than that that's the their theirs them themselves then there there's these they
    they'd they'll they're they've this those through to too under until up ve very was wasn't we we'd we'll we're we've
    were weren't what what's when when's where where's which while who who's whom why why's with won't would wouldn't
    you you'd you'll you're you've your yours yourself yourselves""".split()
)

#: Each group lists the forms of one word, its base first.
_GROUPS = """
be was were been is are am|begin began begun|break broke broken|bring brought|build built|buy bought|catch
caught|choose chose chosen|come came|cost|cut|do did done|draw drew drawn|drink drank drunk|drive drove
driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot
forgotten|forgive forgave forgiven|get got gotten|give gave given|go goes went gone|grow grew grown|hang hung|have
had has|hear heard|hide hid hidden|hold held|keep kept|know knew known|lead led|learn learnt|leave left|lend
lent|lose lost|make made|mean meant|meet met|pay paid|read|ride rode ridden|ring rang rung|rise rose risen|run
ran|say said|see saw seen|sell sold|send sent|sew sewed sewn|shake shook shaken|shine shone|shoot shot|show
showed shown|sing sang sung|sit sat|sleep slept|speak spoke spoken|spend spent|stand stood|steal stole
stolen|swim swam swum|take took taken|teach taught|tell told|think thought|throw threw thrown|understand
understood|wake woke woken|wear wore worn|win won|write wrote written|child children kid kids|woman women|man
men|person people|foot feet|mouse mice|tooth teeth|wife wives|knife knives
"""

#: Form -> base. "leaves" and "lives" are left to the stemmer: in conversations, the verbs "leave" and "live" are more
#: frequent than the plurals of "leaf" and "life".
IRREGULAR = {form: group.split()[0] for group in _GROUPS.split("|") for form in group.split()}
