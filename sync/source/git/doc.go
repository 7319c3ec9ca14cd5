// Package git fetches git repositories and serves their files.
//
// A Store keeps one shallow bare mirror for each pair of URL and credentials, however many users
// read it. Resolve asks the server, with one ls-remote, which commit a Ref stands for
// now. Open returns that commit as a read-only tree, fetching it only if the mirror does not hold
// it yet. Concurrent calls share one conversation with the server.
//
// Readers never wait for writers: a Tree reads the packs that were there when it was opened. A
// mirror that is damaged, or has collected too many packs, is replaced by a fresh one beside it and
// removed when its last reader closes. A commit that lacks something after that too is taken for one
// that the server does not send as a whole, and is not fetched again for a day. When the disk space
// of the Store is used up, unused mirrors are removed. A process that is killed leaves at worst a
// temporary directory, which the next NewStore removes.
//
// Nothing that a server or a repository says is trusted: sizes, counts and depths are limited (see
// Limits), symbolic links resolve only inside the repository, and errors never carry credentials.
// Submodules are ignored.
package git
