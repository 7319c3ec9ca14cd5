/*
Package restore makes the objects of an application out of the definitions in a snapshot: under other
names, in another namespace, with other labels. It changes definitions only, and talks to no cluster.

Clean removes what the API server and controllers have set, and Detach the marks of what delivered
the object. Make does all that is needed for objects that can be created.
*/
package restore
