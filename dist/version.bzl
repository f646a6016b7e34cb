"""The version in the archives' names; a build where <weir/common.h> says another one fails."""

VERSION = "0.1.0"
