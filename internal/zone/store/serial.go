package store

import (
	"encoding/binary"
	"time"
)

// newer tells whether serial a is newer than b (RFC 1982 §3.2).
func newer(a, b uint32) bool { return a != b && a-b < 1<<31 }

// next is the serial behind have.
func (p SerialPolicy) next(have uint32, now time.Time) uint32 {
	if p == Date {
		year, month, day := now.UTC().Date()
		if today := uint32(((year*100+int(month))*100 + day) * 100); newer(today, have) {
			return today
		}
	}
	return have + 1
}

// soaSerial is the serial in the RDATA of an SOA record.
func soaSerial(rdata []byte) uint32 { return binary.BigEndian.Uint32(rdata[len(rdata)-20:]) }

// setSerial writes it.
func setSerial(rdata []byte, serial uint32) {
	binary.BigEndian.PutUint32(rdata[len(rdata)-20:], serial)
}
