"""The ``.pomdp`` file format of Cassandra: reader and writer.

The reader accepts the whole grammar, and the deviations that other readers accept:

- sections come in any order, on one line or many; ``#`` begins a comment; line ends are those of any system;
- states, actions and observations are given by names or by a count, and are referred to by name or by number. A name is
  any word without ``:``, ``*`` and ``#``. Where a name is a number, the name counts;
- several names after ``start:`` mean ``start include:``, and a colon before a number is ignored;
- without ``discount`` the discount is 1 (such files mean a finite horizon), without ``values`` they are rewards, and
  without ``start`` the initial belief is uniform;
- without ``observations`` the file is an MDP: every state is observed, and R has no observation;
- of several assignments to one number, the last counts; rewards that no statement gives are 0;
- ``values: cost`` changes the sign of every R, so that the problem always has rewards.

References:
    Cassandra (1994-2003), the POMDP file format of pomdp-solve.
"""

from pomdp_hier.pomdp.pomdp_file.files import read_pomdp, write_pomdp

__all__ = ["read_pomdp", "write_pomdp"]
