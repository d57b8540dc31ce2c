"""`lam="auto"` and `reference="auto"`: how strongly gaps lean towards the reference, and where that
is, read off the data.

choice      lam="auto": which fits are made, who is asked, in which order
reference   reference="auto": zero, or the least value of each feature
answer      what it comes to, for the user: `Missingness`
rows        what all of them see of a table, and fits to begin with

Values lost around the reference, or by chance:
evidence    the likeliest mechanism, and the penalty that follows from it
mechanisms  the ways of losing values
common      EM with one variance for all entries, for lam="auto"
em          EM with variances of their own, for MNARMixture
heavy       clusters with heavy tails
spread      how far variances of clusters are believed, each by itself
mar         gaps that follow a complete feature instead
rare        are values close to the reference rare?

Values lost below a limit:
sides       around the reference, or on one side of it?
cells       how missing shares fall with the means of cluster and feature
deviations  how well partitions explain the values
groups      which features have a limit, and which lose values by chance
hard        limits with a sharp edge
edge        are features cut off at their least values?
others      do the gaps of a feature know the other features?
limit       where the limit lies, and how soft it is
depth       rows that were read less deeply than others

More features than rows:
wide        a larger penalty, if its clusters predict rows better
partitions  what partitions are worth: their loss, and what they predict of rows left out
ward        Ward's clusters, a start that k-means++ does not find
"""
