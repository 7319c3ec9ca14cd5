package git

// ListingsQueued returns how many callers wait for listings that begin when the ones under way end.
func (s *Store) ListingsQueued() int {
	s.listings.mu.Lock()
	defer s.listings.mu.Unlock()
	n := 0
	for _, f := range s.listings.queued {
		n += f.waiting
	}
	return n
}

// ForgetIndexes has the next read of the tree read the indexes of the packs again.
func (t *Tree) ForgetIndexes() {
	t.objects.mu.Lock()
	defer t.objects.mu.Unlock()
	t.objects.storage.Reindex()
}

// ReadOn reads like one whose read had begun when the tree was closed.
func (t *Tree) ReadOn() error {
	_, err := t.objects.entries(t.root.hash, t.limits)
	return t.noted(err)
}
