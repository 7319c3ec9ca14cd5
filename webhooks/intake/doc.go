// Package intake bounds what a webhook server takes in: from whom, how much, and how much at once.
//
// A Server refuses callers without the client certificate that it is configured to require, and
// bodies that are too large, before it reads them, and bodies that would decode into too much,
// before they are decoded. Budgets bound what the requests that are being answered take together:
// those that do not fit wait for others to end, for as long as the API server waits for them. The
// number of connections is bounded as well.
package intake
