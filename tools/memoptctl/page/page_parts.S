// What page.cpp puts together, as bytes of the program. CMakeLists.txt says where d3 lies.
        .section .rodata

        .macro part name
        .global memopt_page_\name
        .hidden memopt_page_\name
memopt_page_\name:
        .endm
        .macro end name
        .global memopt_page_\name\()_end
        .hidden memopt_page_\name\()_end
memopt_page_\name\()_end:
        .byte 0
        .endm

        part html
        .incbin "parts/page.html"
        end html

        part style
        .incbin "parts/page.css"
        end style

        part d3
        .incbin MEMOPT_D3
        end d3

        part script
        .incbin "parts/data.js"
        .incbin "parts/text.js"
        .incbin "parts/state.js"
        .incbin "parts/load.js"
        .incbin "parts/layout.js"
        .incbin "parts/lanes.js"
        .incbin "parts/limits.js"
        .incbin "parts/flame.js"
        .incbin "parts/table.js"
        .incbin "parts/details.js"
        .incbin "parts/comparison.js"
        .incbin "parts/main.js"
        end script

        .section .note.GNU-stack,"",@progbits
