package wire

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"
)

// maxLoose is how many messages in a row may come without a TSIG record: RFC 8945
// §5.3.1 wants one on at least every 100th.
const maxLoose = 99

// Verify checks the next message of the exchange and returns it without its TSIG
// record: the same memory, with its count of additional records and its ID put
// back (RFC 8945 §5.2). A message without one is returned as it is where it may
// stand between signed ones; it is only to be trusted once a later Verify of a
// signed message, or End, found no error. now is in seconds since 1970. After an
// error the exchange is over. Errors are ErrShort, ErrTSIGMissing, ErrTSIGFormat,
// ErrTSIGUnsigned and the ErrBad ones; the latter also come where the peer tells
// them, and then nothing proves that it was the peer.
func (t *TSIG) Verify(msg []byte, now int64) ([]byte, error) {
	if len(msg) < HeaderSize {
		return nil, ErrShort
	}
	var rec tsigRecord
	found, err := rec.find(msg)
	if err != nil {
		return nil, err
	}
	if !found {
		return msg, t.pass(msg)
	}
	if err := t.check(msg, &rec); err != nil {
		return nil, err
	}
	if now-int64(rec.time) > int64(rec.fudge) || int64(rec.time)-now > int64(rec.fudge) { // RFC 8945 §5.2.3
		return nil, fmt.Errorf("comparing the time signed, %d, with %d: %w", rec.time, now, ErrBadTime)
	}
	if rec.err != 0 {
		return nil, peerError(rec.err)
	}
	return msg[:rec.start], nil
}

// End tells whether the response may end here: its last message has to be signed
// (RFC 8945 §5.3.1).
func (t *TSIG) End() error {
	switch {
	case t.signed < 2:
		return ErrTSIGMissing
	case t.loose > 0:
		return ErrTSIGTail
	}
	return nil
}

// pass takes a message without a TSIG record into the digest of the next that has
// one.
func (t *TSIG) pass(msg []byte) error {
	if t.signed < 2 { // a query, and the first message of a response: RFC 8945 §5.3.1
		return ErrTSIGMissing
	}
	if t.loose++; t.loose > maxLoose {
		return ErrTSIGUnsigned
	}
	t.Digest(msg)
	return nil
}

// check does the checks of key and signature in the order of RFC 8945 §5.2, and
// puts count and ID back.
func (t *TSIG) check(msg []byte, rec *tsigRecord) error {
	k := t.key
	if !EqualFold(rec.name[:rec.nameSize], k.name) || !EqualFold(rec.algorithm[:rec.algoSize], k.algorithm) {
		return ErrBadKey
	}
	if len(rec.mac) == 0 && rec.err != 0 { // RFC 8945 §5.3.2: such errors are not signed
		return peerError(rec.err)
	}
	if len(rec.mac) > k.size || len(rec.mac) < k.floor() { // RFC 8945 §5.2.2.1
		return fmt.Errorf("reading a MAC of %d octets: %w", len(rec.mac), ErrTSIGFormat)
	}
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])-1)
	binary.BigEndian.PutUint16(msg, rec.id)
	t.begin()
	_, _ = t.mac.Write(msg[:rec.start])
	t.variables(rec)
	var sum [maxMAC]byte
	want := t.mac.Sum(sum[:0])
	if !hmac.Equal(want[:len(rec.mac)], rec.mac) {
		return ErrBadSig
	}
	if len(rec.mac) < k.least() {
		return fmt.Errorf("reading a MAC of %d octets: %w", len(rec.mac), ErrBadTrunc)
	}
	t.keep(rec.mac)
	return nil
}

// peerError is the error that a peer tells in its TSIG record.
func peerError(code uint16) error {
	what := ErrTSIGFormat
	switch code {
	case tsigBadSig:
		what = ErrBadSig
	case tsigBadKey:
		what = ErrBadKey
	case tsigBadTime:
		what = ErrBadTime
	case tsigBadTrunc:
		what = ErrBadTrunc
	}
	return fmt.Errorf("reading the peer's TSIG error %d: %w", code, what)
}

// find reads the TSIG record of msg, its last record (RFC 8945 §5.1), where it has
// one. One that stands elsewhere, and what cannot be read, is ErrTSIGFormat.
func (rec *tsigRecord) find(msg []byte) (found bool, err error) {
	var cursor Response
	if !cursor.Read(msg) {
		return false, fmt.Errorf("reading a message's question: %w", ErrTSIGFormat)
	}
	var r Record
	for cursor.Next(&r) {
		if found {
			return false, fmt.Errorf("reading a message: TSIG is not its last record: %w", ErrTSIGFormat)
		}
		if r.Type == TypeTSIG {
			if r.Section != Additional || !rec.read(msg, &r) {
				return false, ErrTSIGFormat
			}
			found = true
		}
	}
	if !cursor.Whole() {
		return false, fmt.Errorf("reading a message's records: %w", ErrTSIGFormat)
	}
	return found, nil
}

// read takes the record apart (RFC 8945 §4.2).
func (rec *tsigRecord) read(msg []byte, r *Record) bool {
	rec.start = r.Start
	name, _, ok := ReadName(rec.name[:0], msg, r.Start)
	if !ok || r.Class != ClassANY || r.TTL != 0 {
		return false
	}
	algorithm, off, ok := ReadName(rec.algorithm[:0], msg[:r.End], r.RDATA)
	if !ok {
		return false
	}
	rec.nameSize, rec.algoSize = len(name), len(algorithm)
	b := msg[off:r.End]
	if len(b) < 10 {
		return false
	}
	rec.time = uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
	rec.fudge = binary.BigEndian.Uint16(b[6:])
	size := int(binary.BigEndian.Uint16(b[8:]))
	if b = b[10:]; len(b) < size+6 {
		return false
	}
	rec.mac, b = b[:size:size], b[size:]
	rec.id = binary.BigEndian.Uint16(b)
	rec.err = binary.BigEndian.Uint16(b[2:])
	if int(binary.BigEndian.Uint16(b[4:])) != len(b)-6 {
		return false
	}
	rec.other = b[6:]
	return true
}
