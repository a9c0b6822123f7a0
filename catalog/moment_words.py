"""The words in texts of dates and times: PostgreSQL's tokens (datetktbl in datetime.c) and its abbreviations of zones.

The abbreviations are those of PostgreSQL 15's `timezone_abbreviations = Default`.
"""

from __future__ import annotations


def _words(text: str) -> dict[str, str]:
    """Return the first words of `first second, first second` with the second ones."""
    return dict(pair.split() for pair in text.split(","))


def _pairs(text: str) -> dict[str, int]:
    return {word: int(number) for word, number in _words(text).items()}


_MONTHS = "january february march april may june july august september october november december"
MONTHS = {name[:length]: number for number, name in enumerate(_MONTHS.split(), 1) for length in (3, len(name))}
MONTHS["sept"] = 9
_WEEKDAYS = "sun sunday mon monday tue tues tuesday wed wednesday weds thu thur thurs thursday fri friday sat saturday"
WEEKDAYS = frozenset(_WEEKDAYS.split(" "))
# Words before a number; only the Julian day's mean something.
UNITS = {word: word for word in ("d", "dow", "doy", "h", "isodow", "isoyear", "m", "mm", "s", "y")}
UNITS |= dict.fromkeys(("j", "jd", "julian"), "julian")
NO_WORDS = frozenset(("at", "on"))
RELATIVE = frozenset(("now", "today", "tomorrow", "yesterday"))
ENDLESS = {"epoch": "epoch", "infinity": "infinity", "-infinity": "-infinity"}

# Minutes east of Greenwich.
STANDARD = _pairs("""
acst 570, act -300, acwst 525, aest 600, aft 270, akst -540, almt 360, amt -240, ast -240, awst 480, azot -60,
bdt 360, bnt 480, bort 480, bot -240, bra -180, brt -180, btt 360, cast 570, cct 480, cet 60, chast 765, chut
600, cot -300, cst -360, cxt 420, ddut 600, eat 180, eet 120, egt -60, est -300, fet 180, fjt 720, fnt -120,
galt -360, gamt -540, gft -180, gilt 720, gmt 0, hkt 480, hst -600, ict 420, irt 210, ist 120, jayt 540, jst
540, kst 540, lhst 630, ligt 600, mart -570, met 60, mez 60, mht 720, mmt 390, mpt 600, mst -420, mut 240, mvt
300, myt 480, nft -210, npt 345, nst -210, nzst 720, nzt 720, pet -300, pgt 600, pht 480, pkt 300, pmst -180,
pont 660, pst -480, pwt 540, ret 240, sast 120, sct 240, taht -600, tft 300, tjt 300, tot 780, trut 600, tvt
720, uct 0, ut 0, utc 0, uyt -180, uzt 300, vut 660, wakt 720, wast 420, wat 60, wet 0, wft 720, wgt -180, xjt
360, yapt 600, z 0, zulu 0
""")
DAYLIGHT = _pairs("""
acdt 630, acsst 630, adt -180, aedt 660, aesst 660, akdt -480, almst 420, awsst 540, azost 0, bdst 120, brst
-120, bst 60, cadt 630, cdt -300, cest 120, cetdst 120, chadt 825, clst -180, edt -240, eest 180, eetdst 180,
egst 0, fjst 780, fnst -60, idt 180, kdt 600, kgst 360, mdt -360, mest 120, mesz 120, metdst 120, msd 240,
must 300, ndt -150, nzdt 780, pdt -420, pkst 360, pmdt -120, pyst -180, sadt 630, ulast 540, uyst -120, uzst
360, wadt 480, wdt 540, wetdst 60, wgst -120, yekst 360
""")
# Abbreviations whose offsets have changed over the years: that of the zone counts.
CHANGING = _words("""
amst Asia/Yerevan, anast Asia/Anadyr, anat Asia/Anadyr, arst America/Argentina/Buenos_Aires, art
America/Argentina/Buenos_Aires, azst Asia/Baku, azt Asia/Baku, ckt Pacific/Rarotonga, clt America/Santiago,
davt Antarctica/Davis, easst Pacific/Easter, east Pacific/Easter, fkst Atlantic/Stanley, fkt Atlantic/Stanley,
gest Asia/Tbilisi, get Asia/Tbilisi, gyt America/Guyana, iot Indian/Chagos, irkst Asia/Irkutsk, irkt
Asia/Irkutsk, kgt Asia/Bishkek, kost Pacific/Kosrae, krast Asia/Krasnoyarsk, krat Asia/Krasnoyarsk, lhdt
Australia/Lord_Howe, lint Pacific/Kiritimati, lkt Asia/Colombo, magst Asia/Magadan, magt Asia/Magadan, mawt
Antarctica/Mawson, msk Europe/Moscow, novst Asia/Novosibirsk, novt Asia/Novosibirsk, nut Pacific/Niue, omsst
Asia/Omsk, omst Asia/Omsk, petst Asia/Kamchatka, pett Asia/Kamchatka, pyt America/Asuncion, sgt
Asia/Singapore, tkt Pacific/Fakaofo, tmt Asia/Ashgabat, ulat Asia/Ulaanbaatar, vet America/Caracas, vlast
Asia/Vladivostok, vlat Asia/Vladivostok, volt Europe/Volgograd, yakst Asia/Yakutsk, yakt Asia/Yakutsk, yekt
Asia/Yekaterinburg
""")


def is_relative(text: str) -> bool:
    """Return whether a text is `now`, `today`, `tomorrow` or `yesterday`."""
    return text.strip().lower() in RELATIVE
