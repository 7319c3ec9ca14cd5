// Package kinds knows the kinds of Waybill as an API server offers them, and the words that people
// use for them.
package kinds
