/*
Package metadata stores the definitions of an application's objects: compressed, with a digest, and
where only Waybill's system namespace can read them.

They are JSON, one object a line, without status and managedFields; the digest is that of this text.
Type Object keeps it, compressed, in immutable Secrets `waybill-snapshot-UID-N`; type OnDisk in the file
`UID/definitions.jsonl.gz` below a directory. The same objects give the same bytes.

What is read may have been altered by hand. Nothing is decoded that does not have the digest of the
handle, and finding that out takes no more memory than the compressed bytes.
*/
package metadata
