// Package expansion measures what a YAML document becomes once its aliases are written out: a few
// lines may stand for more than fits into memory. Whoever decodes YAML that others wrote checks it
// first.
package expansion
