// Package isolated renders kustomizations and charts in processes of their own. Rendering cannot be
// interrupted, and a few patches, replacements or template functions are enough to make it run for hours,
// fill the memory, or overflow the stack, which ends the process. So the process that it ends is one
// that is there for nothing else.
//
// Such a process is the same program again, which calls Main first. It has no environment and no network
// of its own making: it reads files and looks up objects of the cluster by asking for them. A Builder
// starts processes when they are needed, keeps them for what is rendered next, since the first
// kustomization in each parses the schema of the built-in kinds, and ends them when they have not been
// needed for a minute.
package isolated
