package search

// texts is many texts, one behind the other.
type texts struct {
	all  string
	more []byte   // what stands behind all, and is not part of it yet
	ends []uint32 // of each text
}

// at is text i; it shares the memory of all.
func (t *texts) at(i uint32) string {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	end := t.ends[i]
	if int(end) > len(t.all) {
		t.settle()
	}
	return t.all[start:end]
}

// add puts a text behind the others; a text of before stays valid.
func (t *texts) add(s string) {
	t.more = append(t.more, s...)
	t.ends = append(t.ends, uint32(len(t.all)+len(t.more)))
}

// settle makes what was added part of all.
func (t *texts) settle() {
	if len(t.more) > 0 {
		t.all, t.more = t.all+string(t.more), nil
	}
}

func (t *texts) len() int { return len(t.ends) }

// find marks the places of a text. Lengths differ more often than first letters do.
func (t *texts) find(want string, places []bool) {
	size, start := uint32(len(want)), uint32(0)
	for i, end := range t.ends {
		if end-start == size && t.is(start, end, want) {
			places[i] = true
		}
		start = end
	}
}

// is tells whether a text stands between two places, without making it one.
func (t *texts) is(start, end uint32, want string) bool {
	if len(t.all) == 0 {
		return string(t.more[start:end]) == want
	}
	t.settle()
	return t.all[start:end] == want
}
