// Package isolated builds kustomizations in processes of their own. A build cannot be interrupted, and
// a few patches, replacements or references between definitions are enough to make it run for hours,
// fill the memory, or overflow the stack, which ends the process. So the process that it ends is one
// that is there for nothing else.
//
// Such a process is the same program again, which calls Main first. It reads files by asking for them:
// the repository stays where it is. A Builder starts processes when they are needed, keeps them for
// the next builds, since the first in each parses the schema of the built-in kinds, and ends them when
// they have not been needed for a minute.
package isolated
