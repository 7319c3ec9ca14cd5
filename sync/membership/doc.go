// Package membership says which Application an object belongs to, and which marks it should
// carry for that. It is pure: admission asks it of every write, the Application controller of what
// admission missed, and both get the same answer (C52).
package membership
