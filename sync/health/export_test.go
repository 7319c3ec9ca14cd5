package health

import "fmt"

// Known returns the rules that Waybill comes with, as they stand in their file.
func Known() []Entry {
	entries, err := decode(string(known))
	if err != nil {
		panic(fmt.Sprintf("rules that Waybill comes with: %s", err))
	}
	return entries
}
