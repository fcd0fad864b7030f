package app

import "sync"

// numbers gives texts numbers that stay, over reloads: what has been logged under a
// number keeps its meaning. 0 is no text. When all are given away, what is new
// has none.
type numbers struct {
	mu     sync.RWMutex // guards what follows
	texts  []string     // by number, less one
	number map[string]uint16
}

// of is the number of text.
func (n *numbers) of(text string) uint16 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.number == nil {
		n.number = map[string]uint16{}
	}
	at, ok := n.number[text]
	if !ok && len(n.texts) < 1<<16-1 {
		n.texts = append(n.texts, text)
		at = uint16(len(n.texts))
		n.number[text] = at
	}
	return at
}

// text is what has that number.
func (n *numbers) text(at uint16) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if at == 0 || int(at) > len(n.texts) {
		return ""
	}
	return n.texts[at-1]
}
