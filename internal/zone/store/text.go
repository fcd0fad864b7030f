package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// ErrTooLarge is a master file of more octets than allowed.
var ErrTooLarge = errors.New("master file is larger than allowed")

// Text is a master file that comes from elsewhere, such as the body of a request.
type Text struct {
	Name   string    // that problems give it
	Body   io.Reader // is read once
	Most   int64     // octets, 8 GiB if 0; more are ErrTooLarge
	Origin wire.Name // the apex
}

// Source reads the text. It goes through a file beside the store's, so that it is
// parsed in parallel and is never in memory whole; $INCLUDE is an error in it. The
// file is removed before the source returns. A source is used once.
func (s *Store) Source(t Text) Source {
	return func(ctx context.Context, each func([]zonefile.Record) error) error {
		if t.Most <= 0 {
			t.Most = 8 << 30
		}
		dir, err := os.MkdirTemp(filepath.Dir(s.cfg.Path), "import-")
		if err != nil {
			return fmt.Errorf("making room for %s: %w", t.Name, err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "text")
		size, err := t.spool(ctx, path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
		// The limit of octets is the size of the text itself: not even it can be
		// included.
		o := zonefile.Options{Origin: t.Origin, Root: dir, Limits: zonefile.Limits{Bytes: max(size, 1), Depth: 1}}
		err = zonefile.Read(path, o, func(batch []zonefile.Record) error {
			for i := range batch {
				batch[i].File = t.Name
			}
			return each(batch)
		})
		return t.rename(err, dir)
	}
}

// spool writes the text to a file.
func (t *Text) spool(ctx context.Context, path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, io.LimitReader(contextReader{ctx, t.Body}, t.Most+1))
	if err == nil && n > t.Most {
		err = fmt.Errorf("reading more than %d octets: %w", t.Most, ErrTooLarge)
	}
	return n, errors.Join(err, f.Close())
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// rename puts the text's name into problems in place of the file's.
func (t *Text) rename(err error, dir string) error {
	var bad *zonefile.ProblemsError
	if !errors.As(err, &bad) {
		return err
	}
	for i := range bad.Problems {
		p := &bad.Problems[i]
		p.File = t.Name
		if strings.Contains(p.Mend, dir) {
			p.Mend = "put the records in its place"
		}
		p.Text = strings.ReplaceAll(p.Text, dir+string(filepath.Separator), "")
	}
	return err
}
