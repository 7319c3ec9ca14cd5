// Package schema checks the values of an installation against the values.schema.json of a chart and of
// its subcharts before anything is rendered, when other layers of values are not known.
//
// The values of an installation win over all others, so that what they set is what the chart gets. A
// Fault is therefore certain: Helm refuses the values too, whatever the other layers are. What depends
// on values that others may set, such as a property that is missing, is left to the rendering.
//
// Charts are written by others. A schema is bounded before it is compiled, and so is the work of a
// check; nothing is fetched.
package schema
