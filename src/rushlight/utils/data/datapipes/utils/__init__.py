"""What pipes are made with: streams that close themselves, decoders of files, places in a stream."""
