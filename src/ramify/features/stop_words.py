"""Stop lists by name."""

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

# Function words of English by kind, and contractions as they look when the apostrophe splits them.
_LONG = """
a an the this that these those such same other another others either neither each every both all any some many much more most
few fewer fewest less least several enough none no one ones

i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
itself they them their theirs themselves who whom whose which what whoever whomever whichever whatever somebody someone
something anybody anyone anything everybody everyone everything nobody nothing oneself thee thou thy thine ye

about above across after against along alongside amid amidst among amongst around as at atop before behind below beneath beside
besides between beyond but by concerning considering despite down during except excepting excluding following for from in inside
into like minus near next of off on onto opposite out outside over past per plus regarding round save since than through
throughout till to toward towards under underneath unlike until unto up upon versus via with within without

and or nor so yet because although though even if unless while whereas whether once provided lest albeit whereby wherein
whereupon whence whither hence thence thereby therein thereof thereupon thereafter hereby herein hereafter hereupon therefore
thus however nevertheless nonetheless moreover furthermore otherwise instead meanwhile accordingly consequently likewise namely

am is are was were be been being do does did doing done have has had having can could may might must shall should will would
ought need dare used get gets got gotten getting go goes going gone went come comes coming came let lets make makes made making
take takes taken took say says said saying see seen seem seems seemed seeming become becomes became becoming keep keeps kept
give given put know known think use using

not never ever always often sometimes sometime seldom rarely usually again also too very rather quite just only almost nearly
already still soon now then here there where when why how ago away back far further farther indeed perhaps maybe please else
elsewhere everywhere somewhere anywhere nowhere anyhow anyway somehow afterwards afterward beforehand formerly latterly later
latter former lately recently together apart alone well mostly mainly largely merely really actually certainly probably
especially particularly generally simply etc eg ie viz vs yes oh ok okay

zero two three four five six seven eight nine ten first second third last own

isn aren wasn weren don doesn didn hasn haven hadn won wouldn shan shouldn couldn mustn needn ain ll ve re
"""

STOP_LISTS: dict[str, frozenset[str]] = {
    "english": frozenset(ENGLISH_STOP_WORDS),
    "english-long": frozenset(_LONG.split()),
}
