// Package get is the verb `get`: objects of our kinds, in one cluster or in all of them.
package get
