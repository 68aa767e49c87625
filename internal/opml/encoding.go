// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// document is a document whose markup can be found byte by byte: in its own encoding if
// that is a superset of ASCII, and otherwise in UTF-8.
type document struct {
	text []byte
	// whole is the encoding from which the text was converted to UTF-8. Nil: the text was
	// not converted.
	whole encoding.Encoding
	// values is the encoding of attribute values. Nil: UTF-8.
	values encoding.Encoding
}

// decode converts UTF-16 to UTF-8 if that can be undone without loss. Other documents have their
// encoding in the XML declaration, see setCharset.
func decode(in []byte) (*document, error) {
	order := unicode.BigEndian
	switch {
	case bytes.HasPrefix(in, []byte("\xff\xfe")), bytes.HasPrefix(in, []byte("<\x00")):
		order = unicode.LittleEndian
	case !bytes.HasPrefix(in, []byte("\xfe\xff")) && !bytes.HasPrefix(in, []byte("\x00<")):
		return &document{text: in}, nil
	}
	utf16 := unicode.UTF16(order, unicode.IgnoreBOM)
	text, err := utf16.NewDecoder().Bytes(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if back, err := utf16.NewEncoder().Bytes(text); err != nil || !bytes.Equal(back, in) {
		return nil, fmt.Errorf("%w: it has characters in it that its encoding does not have", ErrInvalid)
	}
	return &document{text: text, whole: utf16}, nil
}

// setCharset sets the encoding of the XML declaration. The XML decoder calls it for all
// encodings but UTF-8.
func (d *document) setCharset(label string) error {
	// An unknown encoding, and UTF-16 in a document that is not UTF-16, are taken for UTF-8.
	e, name := charset.Lookup(label)
	if d.whole != nil || e == nil || name == "utf-8" || name == "replacement" || strings.HasPrefix(name, "utf-16") {
		return nil
	}
	if name == "iso-2022-jp" { // its characters are made of ASCII's bytes
		return fmt.Errorf("the encoding %s is not supported: convert it to UTF-8", label)
	}
	d.values = e
	return nil
}

// encode is the inverse of decode.
func (d *document) encode(text []byte) ([]byte, error) {
	if d.whole == nil {
		return text, nil
	}
	out, err := d.whole.NewEncoder().Bytes(text)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return out, nil
}

// unescape returns the text of an attribute value.
func (d *document) unescape(value []byte) (string, error) {
	if d.values != nil {
		plain, err := d.values.NewDecoder().Bytes(value)
		if err != nil {
			return "", err
		}
		value = plain
	}
	if !utf8.Valid(value) {
		return "", ErrInvalid
	}
	if bytes.IndexByte(value, '&') < 0 {
		return string(value), nil
	}
	dec := xml.NewDecoder(strings.NewReader(`<a v="` + strings.ReplaceAll(string(value), `"`, "&#34;") + `"/>`))
	dec.Strict = false // a bare & is one
	dec.Entity = xml.HTMLEntity
	token, err := dec.Token()
	if err != nil {
		return "", err
	}
	element, ok := token.(xml.StartElement)
	if !ok || len(element.Attr) != 1 {
		return "", ErrInvalid
	}
	return element.Attr[0].Value, nil
}

func bom(text []byte) []byte {
	mark := []byte("\xef\xbb\xbf")
	if !bytes.HasPrefix(text, mark) {
		return nil
	}
	return mark
}
