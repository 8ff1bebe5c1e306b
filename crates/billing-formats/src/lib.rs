//! Maps a free-form event by a usage format
