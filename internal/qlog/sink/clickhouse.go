package sink

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// insertLimit is how long an insert may take.
const insertLimit = time.Minute

// clickHouse is an outlet to a table.
type clickHouse struct {
	client *http.Client
	url    url.URL
	query  url.Values
	header http.Header
	pack   func(octets []byte) ([]byte, error) // nil: as it is
}

// openClickHouse opens a sink to a table.
func openClickHouse(c Config, env Env) (parts, error) {
	table := c.ClickHouse
	u, err := url.Parse(c.To)
	if err != nil {
		return parts{}, errors.New("reading its URL: it is malformed") // what it says may be a password
	}
	o := &clickHouse{url: *u, query: insertQuery(table), header: http.Header{"Content-Type": {"application/x-ndjson"}}}
	if o.url.Path == "" {
		o.url.Path = "/"
	}
	security, err := tlsConfig(table)
	if err != nil {
		return parts{}, err
	}
	if err := o.credentials(table); err != nil {
		return parts{}, err
	}
	if o.pack, err = packer(table.Compress); err != nil {
		return parts{}, err
	}
	if o.pack != nil {
		o.header.Set("Content-Encoding", table.Compress)
	}
	o.client = &http.Client{
		Transport: &http.Transport{DialContext: env.Dial, TLSClientConfig: security, MaxIdleConns: 1, IdleConnTimeout: time.Minute, DisableCompression: true},
		// Elsewhere the password has no business.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       insertLimit,
	}
	p := parts{encode: appendLine, out: o, rows: table.Rows, linger: table.Interval}
	if table.Spill != "" {
		if p.spill, err = openSpill(table.Spill, table.SpillSize); err != nil {
			return parts{}, err
		}
	}
	return p, nil
}

// insertQuery is the parameters of every insert.
func insertQuery(c ClickHouse) url.Values {
	return url.Values{
		"query": {fmt.Sprintf("INSERT INTO `%s`.`%s` FORMAT JSONEachRow", c.Database, c.Table)},
		// A table that has only some of the columns gets those.
		"input_format_skip_unknown_fields": {"1"},
		// The answer says that the rows are there, and the token counts for all of them.
		"async_insert":      {"0"},
		"wait_end_of_query": {"1"},
	}
}

func tlsConfig(c ClickHouse) (*tls.Config, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: !c.Verify}
	if c.CA == "" {
		return security, nil
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	security.RootCAs = x509.NewCertPool()
	if !security.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading certificates: %s has none", c.CA)
	}
	return security, nil
}

// credentials sets the headers that carry them; they are in no URL, which errors
// quote.
func (o *clickHouse) credentials(c ClickHouse) error {
	if c.User != "" {
		o.header.Set("X-ClickHouse-User", c.User)
	}
	if c.PasswordFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return fmt.Errorf("reading the password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	o.header.Set("X-ClickHouse-Key", strings.TrimSuffix(line, "\r"))
	return nil
}

// packer is how batches are compressed; nil: they are not.
func packer(name string) (func([]byte) ([]byte, error), error) {
	switch name {
	case "gzip":
		w := gzip.NewWriter(nil)
		return func(octets []byte) ([]byte, error) {
			var b bytes.Buffer
			w.Reset(&b)
			_, err := w.Write(octets)
			err = errors.Join(err, w.Close()) // which writes the end
			return b.Bytes(), err
		}, nil
	case "zstd":
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("preparing compression: %w", err)
		}
		return func(octets []byte) ([]byte, error) { return w.EncodeAll(octets, nil), nil }, nil
	}
	return nil, nil
}

// send inserts a batch, whole or not at all.
func (o *clickHouse) send(ctx context.Context, b *batch) (items int, err error) {
	octets := b.rest()
	body := octets
	if o.pack != nil {
		if body, err = o.pack(octets); err != nil {
			return 0, fmt.Errorf("compressing: %w", err)
		}
	}
	to := o.url
	to.RawQuery = o.query.Encode() + "&insert_deduplication_token=" + token(octets)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("asking for an insert: %w", err)
	}
	req.Header = o.header.Clone()
	resp, err := o.client.Do(req)
	if err != nil {
		if about, ok := errors.AsType[*url.Error](err); ok {
			err = about.Err // the rest is our own query
		}
		return 0, fmt.Errorf("inserting: %w", err)
	}
	if err := outcome(resp); err != nil {
		return 0, err
	}
	return b.left(), nil
}

// token is how ClickHouse knows a batch again: the same rows are the same batch, also
// after they were spilled.
func token(octets []byte) string {
	sum := sha256.Sum256(octets)
	return hex.EncodeToString(sum[:16])
}

// outcome reads a response. Its text is not told: it quotes rows.
func outcome(resp *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	err = errors.Join(err, resp.Body.Close())
	exception := resp.Header.Get("X-ClickHouse-Exception-Code")
	switch {
	case resp.StatusCode == http.StatusOK && exception == "" && err == nil:
		return nil
	case resp.StatusCode == http.StatusOK && exception == "":
		return fmt.Errorf("reading the answer to an insert: %w", err)
	}
	err = fmt.Errorf("inserting: %s", resp.Status)
	if exception != "" {
		err = fmt.Errorf("inserting: %s, exception %.8q", resp.Status, exception)
	}
	// What is malformed will not become well-formed; anything else may be mended.
	if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusRequestEntityTooLarge {
		return refusedError{err}
	}
	return err
}

func (o *clickHouse) close(context.Context) error {
	o.client.CloseIdleConnections()
	return nil
}

// CreateTable is the statement that makes the table which c speaks of.
func CreateTable(c ClickHouse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE `%s`.`%s`\n(\n", c.Database, c.Table)
	for i, col := range columns {
		end := ","
		if i == len(columns)-1 {
			end = ""
		}
		fmt.Fprintf(&b, "    `%s` %s%s\n", col.name, col.sql, end)
	}
	b.WriteString(")\nENGINE = MergeTree\nPARTITION BY toDate(time)\nORDER BY (time, name)\n" +
		"TTL toDateTime(time) + INTERVAL 90 DAY\nSETTINGS non_replicated_deduplication_window = 1000;\n")
	return b.String()
}
