// Package logs implements the command `logs`: it shows the logs of the Pods that an object leads to.
package logs
