package expansion

// MaxValues is how many values the values of an installation may contain together, whatever they are
// written in. Those of the largest public charts are some thousands.
const MaxValues = 200_000

// Nodes estimates how many values a YAML or JSON text holds, without parsing it: there are at most
// twice as many, and in manifests about as many. A parsed value takes a hundred times the memory of
// the two bytes that it may be written in.
func Nodes(content []byte) int {
	nodes := 1
	for i, c := range content {
		switch c {
		case '\n', ',', ':', '[', '{':
			nodes++
		case '-', '?':
			if i+1 < len(content) && (content[i+1] == ' ' || content[i+1] == '\t') {
				nodes++
			}
		}
	}
	return nodes
}
