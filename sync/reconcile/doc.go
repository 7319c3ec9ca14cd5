// Package reconcile is the kernel that every controller of Waybill shares: errors
// that carry how to react, one place that turns an outcome into conditions, an event
// and a result with a single status write, and jobs that run slow work outside of the
// workers and end as an event.
package reconcile
