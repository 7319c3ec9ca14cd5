// Package seed tests a hub, a seed and a user cluster: three API servers, with the controllers of a hub
// running for the hub and for the seed.
package seed
