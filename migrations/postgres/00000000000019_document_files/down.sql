DROP TABLE document_files;
