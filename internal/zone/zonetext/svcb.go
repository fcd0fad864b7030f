package zonetext

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
)

// Keys of service parameters that have a name (RFC 9460 §14.3.2, RFC 9461, RFC
// 9540).
const (
	mandatory = iota
	alpn
	noDefaultALPN
	port
	ipv4hint
	ech
	ipv6hint
	dohpath
	ohttp
	reservedKey = 65535
)

var keyNames = [...]string{"mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath", "ohttp"}

// parameters writes service parameters (RFC 9460 §2.1). Their keys rise in RDATA.
func (t *text) parameters() bool {
	for before := -1; len(t.rest) > 0; {
		head, ok := t.take(4)
		if !ok {
			return false
		}
		key := int(binary.BigEndian.Uint16(head))
		value, ok := t.take(int(binary.BigEndian.Uint16(head[2:])))
		if !ok || key <= before || key == reservedKey {
			return false
		}
		before = key
		t.blank()
		t.dst = appendKey(t.dst, key)
		if !t.value(key, value) {
			return false
		}
	}
	return true
}

func appendKey(dst []byte, key int) []byte {
	if key < len(keyNames) {
		return append(dst, keyNames[key]...)
	}
	return strconv.AppendInt(append(dst, "key"...), int64(key), 10)
}

// value writes the value of a service parameter. It tells whether it is one that
// the key can have and text can tell.
func (t *text) value(key int, v []byte) bool {
	if key == noDefaultALPN || key == ohttp {
		return len(v) == 0
	}
	t.dst = append(t.dst, '=')
	switch key {
	case mandatory:
		return t.keys(v)
	case alpn:
		return t.protocols(v)
	case port:
		if len(v) == 2 {
			t.dst = strconv.AppendUint(t.dst, bigEndian(v), 10)
		}
		return len(v) == 2
	case ipv4hint:
		return t.hints(v, 4)
	case ipv6hint:
		return t.hints(v, 16)
	case ech:
		t.dst = base64.StdEncoding.AppendEncode(t.dst, v)
		return len(v) > 0
	}
	t.dst = appendQuoted(t.dst, v)
	return true
}

// keys writes the keys that are mandatory, which rise (RFC 9460 §8).
func (t *text) keys(v []byte) bool {
	before := mandatory
	for i := 0; i+2 <= len(v); i += 2 {
		key := int(binary.BigEndian.Uint16(v[i:]))
		if key <= before || key == reservedKey {
			return false
		}
		before = key
		t.comma(i)
		t.dst = appendKey(t.dst, key)
	}
	return len(v) > 0 && len(v)%2 == 0
}

// protocols writes identifiers of protocols (RFC 9460 §7.1.1). Such as would need
// two layers of escapes (appendix A.1) are told to be none that text can tell:
// readers differ about them.
func (t *text) protocols(v []byte) bool {
	for i := 0; i < len(v); {
		end := i + 1 + int(v[i])
		if end > len(v) || end == i+1 {
			return false
		}
		id := v[i+1 : end]
		for _, c := range id {
			if nameClass[c] != plain && c != '.' && c != '@' && c != '$' || c == ',' {
				return false
			}
		}
		t.comma(i)
		t.dst = append(t.dst, id...)
		i = end
	}
	return len(v) > 0
}

func (t *text) hints(v []byte, size int) bool {
	for i := 0; i+size <= len(v); i += size {
		if mapped(v[i : i+size]) {
			return false
		}
		t.comma(i)
		t.dst = appendAddress(t.dst, v[i:i+size])
	}
	return len(v) > 0 && len(v)%size == 0
}

// comma parts values of a list, of which the first is at offset 0.
func (t *text) comma(at int) {
	if at > 0 {
		t.dst = append(t.dst, ',')
	}
}
