// Package ownership makes the ownerReferences and marks of objects match their Applications: a
// component gets an ownerReference, an object that is not one loses it, and marks that admission
// missed are added (A62-A67, C7, C32, C52). It looks at objects one by one, as they and their
// Applications change, and never deletes an object (A102).
package ownership
