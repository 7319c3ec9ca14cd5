// Package catalog writes ApplicationDefinitions from charts, and adds the versions that have appeared since.
package catalog
