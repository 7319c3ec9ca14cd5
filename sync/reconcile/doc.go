// Package reconcile is the kernel that all Waybill controllers share: errors that carry how to
// react to them, one place that turns an outcome into conditions, an event and a result with a
// single status write, jobs that run slow work outside of the workers and enqueue an object when
// they end, and what is remembered of an object between passes.
package reconcile
