"""Classes of things, and some of their members: "which pets ...?" is answered by a text about a cat.

For each class a line, which indented lines continue: its names, a colon, and members, each one word. General knowledge,
not exhaustive: a member that is missing here is found by its own word as before. English only.
"""

from __future__ import annotations

from functools import cache

from recollect.text.answers import listed, singular

_CLASSES = """
pet animal creature: dog puppy cat kitten rabbit bunny hamster parrot bird fish goldfish turtle tortoise snake lizard
  gecko horse pony ferret chicken goat
bird: owl parrot eagle sparrow robin crow swan duck pigeon canary
fruit: apple banana orange pear grape strawberry blueberry raspberry cherry peach mango pineapple melon lemon plum
  kiwi
vegetable: carrot potato tomato onion spinach broccoli cabbage lettuce cucumber pepper zucchini pumpkin bean pea
food dish meal cuisine: pizza pasta sushi curry soup salad burger taco sandwich steak noodle rice lasagna stew roast
  risotto ramen dumpling
dessert treat sweet: cake cookie pie brownie chocolate pudding pastry muffin cupcake tart donut cheesecake
drink beverage: coffee tea juice wine beer water milk soda smoothie cocktail lemonade cocoa whisky
ingredient spice herb: salt pepper garlic ginger cinnamon basil oregano cumin paprika thyme rosemary flour sugar
  butter cheese coconut
sport game exercise: football soccer basketball tennis baseball volleyball golf hockey rugby cricket swimming running
  cycling skiing boxing badminton surfing climbing
exercise workout: yoga pilates running jogging cycling swimming weights cardio aerobics stretching hiking boxing zumba
  kickboxing squat
martial: karate judo taekwondo aikido kickboxing boxing
instrument: guitar piano violin drum flute cello saxophone trumpet clarinet ukulele harp keyboard bass harmonica
music genre: jazz rock pop classical rap blues country folk metal punk reggae techno opera soul
musician artist band singer composer: concert album song gig bach mozart beethoven vivaldi
hobby activity pastime interest: painting drawing pottery gardening reading cooking baking hiking camping fishing
  knitting photography dancing swimming running cycling writing chess yoga gaming singing climbing kayaking museum
  surfing
activity outing adventure: hike camping swim museum beach picnic concert park zoo festival movie theater trip bowling
  skating
art craft artwork: painting drawing sculpture pottery sketch photography collage portrait mural watercolor clay
  embroidery quilt origami
game: chess poker monopoly scrabble tetris minecraft puzzle cards nintendo xbox playstation console
book novel author genre: novel fantasy mystery thriller biography memoir poetry trilogy romance fiction
movie film show series: comedy drama thriller documentary horror cartoon episode sitcom cinema trailer
vehicle transport car: car bike bicycle bus train truck motorcycle van boat plane scooter tram ferry taxi
brand car: toyota honda ford bmw tesla audi volkswagen mercedes prius nissan
tree plant flower: rose tulip lily orchid sunflower daisy cactus succulent fern oak maple pine palm lavender
color colour: red blue green yellow purple orange pink black white brown grey gray turquoise
clothes clothing garment outfit item: shirt dress shoes jacket coat hat pants jeans skirt sweater scarf boots sneakers
  suit socks gloves
accessory jewelry jewellery: necklace ring bracelet earrings watch pendant scarf belt bag
gift present souvenir: book necklace flowers mug card ring bracelet toy watch perfume chocolate doll
furniture: table chair sofa couch desk bed shelf lamp cabinet bookcase wardrobe
appliance tool equipment: oven fridge blender toaster microwave drill hammer saw vacuum dishwasher kettle
device gadget electronics: phone laptop tablet computer camera headphones speaker console smartwatch drone printer
  monitor
software program language technology: python java javascript rust react django docker linux excel photoshop sql
relative family: mother father mom dad sister brother son daughter aunt uncle cousin grandmother grandfather grandma
  grandpa niece nephew wife husband
person people friend: friend neighbor colleague roommate classmate teammate partner mentor coach
job career profession occupation work: teacher nurse doctor engineer lawyer writer artist chef manager designer
  accountant programmer counselor actor mechanic architect
business company: shop store bakery cafe restaurant studio startup firm boutique bar
city: paris london rome berlin madrid tokyo york chicago boston seattle barcelona amsterdam dublin vienna prague
  lisbon toronto sydney
country: france italy spain germany england ireland japan china india canada mexico brazil australia greece sweden
  thailand portugal turkey
state: california texas florida oregon washington colorado minnesota ohio georgia michigan arizona
continent: europe asia africa america australia antarctica
place location spot destination: beach park museum lake mountain forest river island cafe restaurant library castle
  waterfall desert
building landmark: church castle tower bridge cathedral temple palace museum stadium library
event celebration: wedding party concert festival birthday graduation parade conference exhibition show fair
  anniversary meetup marathon gala
holiday: christmas easter halloween thanksgiving hanukkah ramadan diwali valentine
cause charity volunteer community: shelter homeless hospital donation fundraiser charity volunteering foodbank
  orphanage veterans
class course workshop subject: yoga pottery painting cooking math physics chemistry biology history photography dance
  writing
subject degree major field: math physics chemistry biology history psychology economics law medicine literature
  philosophy engineering nursing
certification: degree diploma license certificate
illness disease condition: flu cold fever cancer diabetes asthma allergy covid migraine arthritis pneumonia anxiety
  depression
allergy: peanut nut pollen dairy gluten shellfish cat dog egg dust
injury: sprain fracture broken ankle knee wrist concussion
symptom: headache fever cough nausea fatigue pain rash dizziness
medication medicine treatment: aspirin ibuprofen antibiotic insulin pill tablet vaccine therapy surgery
emotion feeling mood: happy sad angry nervous excited proud scared lonely anxious grateful relieved stressed
weather: rain snow sun wind storm fog hail thunder heat
season: spring summer autumn fall winter
pattern print: stripes dots floral plaid
material fabric: wood metal plastic glass cotton wool leather silk clay paper
award prize honor: medal trophy scholarship award certificate ribbon grant
tournament competition contest: championship cup league match final marathon race
language: english spanish french german italian chinese japanese korean arabic russian portuguese hindi
religion: christian muslim jewish buddhist hindu catholic
room: kitchen bedroom bathroom garage basement attic livingroom office balcony
"""


@cache
def _members() -> dict[str, tuple[str, ...]]:
    """Map each name of a class, in the singular, to the members of all classes of that name."""
    out: dict[str, tuple[str, ...]] = {}
    for line in _CLASSES.replace("\n  ", " ").strip().splitlines():
        names, _, members = line.partition(": ")
        for name in map(singular, names.split()):
            out[name] = tuple(dict.fromkeys((*out.get(name, ()), *members.split())))
    return out


def members_of(question: str) -> dict[str, str]:
    """Return words for members of the classes that an English question asks for, each with the name of its class.

    >>> list(members_of("Which pets does Ana have?").items())[:2], members_of("What did Ana say?")
    ([('dog', 'pet'), ('puppy', 'pet')], {})
    """
    out: dict[str, str] = {}
    for name in listed(question):
        for member in _members().get(name, ()):
            out.setdefault(member, name)
    return out
