"""What tools/make_stub.py is made of: types of ops written in C++ (ops), of functions written in Python (functions), and
whole modules (modules). `core.pyi.in` has the classes of the extension that are no ops."""
