// Package rewind notices that an API server went back to an earlier state, because its etcd was
// restored from a snapshot. A watch of before would go on from a resource version of the future:
// the API server accepts that, and sends nothing until it has caught up. What was remembered by
// resource version is void as well.
//
// It costs nothing while the API server is there. Once connections to it were refused, as they are while
// etcd is restored, a watch does not resume but its reflector lists again; where a watch was only cut, or
// the next one is slow to begin, one object is listed. A list that is older than what was seen before shows
// that time went back, and so does one that is newer by far: etcd can be restored with resource versions that
// continue after a gap, which watches notice by themselves, and what was remembered of objects is as void.
package rewind
