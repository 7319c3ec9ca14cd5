package expansion

// Size is how much values hold.
type Size struct {
	// Values is the number of values, those in maps and lists included, but not the keys.
	Values int
	// Bytes is the length of all texts and keys.
	Bytes int
}

// Add adds a value, and all that it holds.
func (s *Size) Add(value any) {
	s.Values++
	switch value := value.(type) {
	case string:
		s.Bytes += len(value)
	case []any:
		for _, item := range value {
			s.Add(item)
		}
	case map[string]any:
		for key, item := range value {
			s.Bytes += len(key)
			s.Add(item)
		}
	}
}
