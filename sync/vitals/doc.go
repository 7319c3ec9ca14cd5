// Package vitals reads how objects are: one by one as they change, a kind in pages where many
// are wanted at once. An object is reduced to its health as soon as it is read. What was read
// is remembered, and read again only when somebody has seen a newer version.
package vitals
