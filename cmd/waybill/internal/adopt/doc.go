// Package adopt is the verb `adopt`: an Application is written from the objects that are there,
// and they are annotated as its components (A89, A90).
package adopt
