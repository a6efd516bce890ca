"""The figures that Gopal & Yang 2013 report."""

from __future__ import annotations

SYSTEMS = ("svm", "hr-svm", "lr", "hr-lr", "td-svm", "hsvm", "ot", "hblr")
DATA_SETS = ("CLEF", "RCV1", "IPC", "LSHTC-small", "DMOZ-2010", "DMOZ-2012", "DMOZ-2011", "SWIKI", "LWIKI")

Figures = tuple[float | None, ...]

# Table 3 in percent, a value for each of SYSTEMS; None where the method could not be run
MACRO_F1: dict[str, Figures] = {
    "CLEF": (48.59, 53.92, 53.26, 55.83, 32.32, 57.23, 37.12, 59.65),
    "RCV1": (54.72, 56.56, 53.39, 55.81, 34.15, None, None, None),
    "IPC": (45.71, 47.89, 48.29, 49.60, 42.62, None, None, 51.06),
    "LSHTC-small": (28.62, 28.94, 28.12, 28.48, 20.01, 21.95, 19.45, 30.81),
    "DMOZ-2010": (32.64, 33.12, 31.58, 32.42, 22.30, None, None, None),
    "DMOZ-2012": (31.59, 33.05, 14.18, 20.04, 30.01, None, None, None),
    "DMOZ-2011": (24.34, 25.69, 21.67, 23.90, 21.07, None, None, None),
    "SWIKI": (26.57, 28.72, 19.51, 24.26, 17.39, None, None, None),
    "LWIKI": (19.89, 22.31, 18.65, 20.22, None, None, None, None),
}
MICRO_F1: dict[str, Figures] = {
    "CLEF": (77.53, 80.02, 79.92, 80.12, 70.11, 79.72, 73.84, 81.41),
    "RCV1": (80.82, 81.66, 80.08, 81.23, 71.34, None, None, None),
    "IPC": (53.12, 54.26, 55.03, 55.37, 50.34, None, None, 56.02),
    "LSHTC-small": (45.21, 45.31, 44.94, 45.11, 38.48, 39.66, 37.12, 46.03),
    "DMOZ-2010": (45.36, 46.02, 45.40, 45.84, 38.64, None, None, None),
    "DMOZ-2012": (56.44, 57.17, 52.79, 53.18, 55.14, None, None, None),
    "DMOZ-2011": (42.88, 43.73, 41.29, 42.27, 35.91, None, None, None),
    "SWIKI": (40.87, 41.79, 37.65, 40.99, 36.65, None, None, None),
    "LWIKI": (37.66, 38.08, 36.96, 37.67, None, None, None, None),
}
# Table 4: minutes of training; the first four data sets on 32 cores, the others on a cluster
MINUTES: dict[str, Figures] = {
    "CLEF": (0.15, 0.42, 0.24, 1.02, 0.13, 3.19, 1.31, 3.05),
    "RCV1": (0.273, 0.55, 2.89, 11.74, 0.213, None, None, None),
    "IPC": (3.12, 6.81, 4.17, 15.91, 2.21, None, None, 31.2),
    "LSHTC-small": (0.31, 0.52, 1.93, 3.73, 0.11, 289.60, 132.34, 5.22),
    "DMOZ-2010": (5.12, 8.23, 97.24, 123.22, 3.97, None, None, None),
    "DMOZ-2012": (22.31, 36.66, 95.38, 229.73, 12.49, None, None, None),
    "DMOZ-2011": (39.12, 58.31, 101.26, 248.07, 16.39, None, None, None),
    "SWIKI": (54.0, 89.23, 99.46, 296.87, 21.34, None, None, None),
    "LWIKI": (1114.23, 2230.54, 2134.46, 7282.09, None, None, None, None),
}
# Table 1
FACTS = {
    "CLEF": {"train": 10_000, "test": 1_006, "nodes": 87, "classes": 63, "features": 89},
    "RCV1": {"train": 23_149, "test": 78_446, "nodes": 137, "classes": 101, "features": 48_734},
}
# below which level the paper's tests hold: macro F1 by Wilcoxon's test, micro F1 by the sign test
LEVELS = {
    ("CLEF", "hr-svm", "svm"): (0.01, 0.01),
    ("CLEF", "hr-lr", "lr"): (0.05, 0.05),
    ("RCV1", "hr-svm", "svm"): (0.05, 0.01),
    ("RCV1", "hr-lr", "lr"): (0.05, 0.01),
}


def figure(table: dict[str, Figures], data_set: str | None, system: str) -> float | None:
    """What a table says of a system on a data set.

    >>> figure(MACRO_F1, "CLEF", "hr-svm")
    53.92
    """
    return table[data_set][SYSTEMS.index(system)] if data_set in table else None
