"""What can be said to the verbs: each option is described once, in the group in which it travels.

source  Reading: how a table is read; Steps: how it is prepared; Source: both, and the table
model   Fitting: one model; Searching: the choice of one
use     Use: a model for new tables
output  Output, OptionalOutput, OutputFile: where to; Page: the report; Telling: what is said
panels  the headings of the help under which they stand
"""

from .model import Fitting, Jobs, Model, Scheduler, Searching, Seed, as_number
from .output import (
    FitOutput,
    Force,
    OptionalOutput,
    Out,
    Output,
    OutputFile,
    Page,
    Picture,
    Telling,
    Title,
)
from .source import Data, Normalize, Reading, Rereading, Scale, Source, Steps
from .use import Use

__all__ = [
    "Data",
    "FitOutput",
    "Fitting",
    "Force",
    "Jobs",
    "Model",
    "Normalize",
    "OptionalOutput",
    "Out",
    "Output",
    "OutputFile",
    "Page",
    "Picture",
    "Reading",
    "Rereading",
    "Scale",
    "Scheduler",
    "Searching",
    "Seed",
    "Source",
    "Steps",
    "Telling",
    "Title",
    "Use",
    "as_number",
]
