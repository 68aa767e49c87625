// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/opml"
)

func opmlCommand() *cobra.Command {
	var o opmlOptions
	cmd := &cobra.Command{
		Use:   "opml <in.opml> --gateway <URL>",
		Short: "Changes a subscription list to the addresses of a gateway, or back",
		Long: `Prints a subscription list (OPML, as feed readers export it) in which each feed has
its address at the gateway. Only the xmlUrl values change: folders, comments and a
reader's own attributes stay byte for byte. Feeds without an http or https URL, such
as the commands of some readers, stay as they are.

With --direct, the feeds get their own URLs back.

The list is a file, or - for standard input. It is not sent anywhere.`,
		Example: `  pollard feeds opml subscriptions.opml --gateway http://feeds.home.arpa > gateway.opml
  pollard feeds opml subscriptions.opml --gateway https://feeds.example.com --token "$ALICE_TOKEN" > alice.opml
  pollard feeds opml gateway.opml --gateway http://feeds.home.arpa --direct > subscriptions.opml`,
		Args: exactArgs(1, "one subscription list"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.run(args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.gateway, "gateway", "", "the URL of the gateway, such as http://feeds.home.arpa")
	flags.StringVar(&o.token, "token", "", "the secret of a token, if the gateway needs one")
	flags.BoolVar(&o.direct, "direct", false, "give the feeds their own URLs back")
	return cmd
}

// opmlOptions are the flags of `feeds opml`, as given.
type opmlOptions struct {
	gateway, token string
	direct         bool
}

func (o *opmlOptions) run(path string, stdin io.Reader, out, stderr io.Writer) error {
	if o.gateway == "" {
		return wrongUsage("--gateway is missing: give the URL of the gateway, such as http://feeds.home.arpa")
	}
	gateway, err := feedurl.ParseGateway(o.gateway, o.token)
	if err != nil {
		return wrongUsage("--%v", err)
	}
	list, err := readFileOr(path, stdin)
	if err != nil {
		return err
	}
	var kept []string
	rewritten, changed, err := opml.Rewrite(list, func(url string) (string, error) {
		if after, ok := o.change(gateway, url); ok {
			return after, nil
		}
		kept = append(kept, url)
		return url, nil
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if _, err := out.Write(rewritten); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	fmt.Fprintf(stderr, "%d changed, %d left as they are\n", changed, len(kept))
	for _, url := range kept {
		fmt.Fprintf(stderr, "  %s\n", plain(feedurl.Redact(url)))
	}
	return nil
}

// change returns the other address of a feed. It reports false if there is none.
func (o *opmlOptions) change(gateway feedurl.Gateway, url string) (string, bool) {
	if o.direct {
		return gateway.Feed(url)
	}
	address, err := gateway.Address(url)
	return address, err == nil && address != url
}

// readFileOr reads a file, or the standard input where its name is -.
func readFileOr(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path) // its error names the path
}
