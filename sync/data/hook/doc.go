/*
Package hook runs commands in the containers of an application, through the API server, as
`kubectl exec` does: to bring it to rest before its volumes are cut, and to release it afterwards.

What a command prints is not trusted: only the beginning of its output and the end of its errors are
kept.
*/
package hook
