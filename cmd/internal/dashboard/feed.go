package dashboard

import "sync"

// feed tells those who look at pages that something has changed.
type feed struct {
	mu      sync.Mutex
	streams map[chan struct{}]map[string]bool // the kinds that each is about
}

func newFeed() *feed { return &feed{streams: map[chan struct{}]map[string]bool{}} }

// maxStreams is how many pages may be open at a time.
const maxStreams = 200

// subscribe returns a channel that receives when an object of one of the kinds has changed, and the
// function that ends that; nil if there are too many already.
func (f *feed) subscribe(kinds []string) (changes chan struct{}, end func()) {
	about := map[string]bool{}
	for _, kind := range kinds {
		about[kind] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) >= maxStreams {
		return nil, nil
	}
	changes = make(chan struct{}, 1)
	f.streams[changes] = about
	return changes, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.streams, changes)
	}
}

// tell wakes the streams that are about a kind. It does not block.
func (f *feed) tell(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for changes, about := range f.streams {
		if about[kind] {
			wake(changes)
		}
	}
}

func wake(changes chan struct{}) {
	select {
	case changes <- struct{}{}:
	default: // one is waiting already
	}
}
