// Package ownership brings the ownerReferences and marks of objects to what Applications say:
// a component gets an ownerReference, what is none loses it, and what admission missed is
// filled in (A62-A67, C7, C32, C52). Objects are looked at one by one, as they and their
// Applications change; no object is ever deleted (A102).
package ownership
