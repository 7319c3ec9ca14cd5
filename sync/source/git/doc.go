// Package git fetches git repositories and serves their files.
//
// A Store keeps one shallow bare mirror for each pair of URL and credentials,
// however many users read it (K22, C56). Resolve asks the server, with one
// ls-remote, which commit a Ref stands for now. Open hands out that commit as a
// read-only tree, fetching it only when the mirror does not hold it yet. Calls
// that arrive at the same time share one conversation with the server.
//
// Readers never wait for writers: a Tree reads the packs that were there when
// it was opened, and a mirror that has gone bad, or has collected too many
// packs, is replaced by a fresh one beside it and removed when its last reader
// closes. A process killed at any point leaves at worst a temporary directory,
// which the next NewStore removes.
//
// Nothing that a server or a repository says is trusted: sizes, counts and
// depths are limited (see Limits), symbolic links resolve only inside the
// repository, and errors never carry credentials. Submodules are ignored.
package git
