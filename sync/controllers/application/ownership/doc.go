// Package ownership makes the ownerReferences and marks of objects match their Applications: a
// component gets an ownerReference, an object that is not one loses it, and marks that admission
// missed are added. It reconciles objects one by one, as they and their Applications change, and
// never deletes an object.
package ownership
